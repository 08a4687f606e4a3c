//! A tree in the making.

use super::shapes::Shapes;
use super::tree::{Container, Items, Offsets, Tree};
use super::value::{ContainerId, NumberId, ShortInt, TextId, Value};
use crate::budget::Budget;
use crate::error::SnapshotError;
use std::collections::BTreeMap;

type HistoryStep<T = ()> = Result<T, SnapshotError>;

/// Takes values, each because of an instruction at some byte `at`, and gives them ids.
#[derive(Debug)]
pub(super) struct Builder<'a, 'b> {
    pub(super) budget: &'b mut Budget,
    containers: Vec<Container>,
    offsets: Offsets,
    shared: Vec<Value>,
    own: Vec<Vec<Value>>,
    shapes: Shapes,
    texts: Vec<&'a [u8]>,
    text_ids: BTreeMap<&'a [u8], TextId>,
    numbers: Vec<u64>,
}

impl<'a, 'b> Builder<'a, 'b> {
    pub(super) fn new(budget: &'b mut Budget) -> Self {
        Self {
            budget,
            containers: Vec::new(),
            offsets: Offsets::default(),
            shared: Vec::new(),
            own: Vec::new(),
            shapes: Shapes::default(),
            texts: Vec::new(),
            text_ids: BTreeMap::new(),
            numbers: Vec::new(),
        }
    }

    /// The tree with this root.
    pub(super) fn finish(self, root: Value, trailing: usize, at: usize) -> HistoryStep<Tree<'a>> {
        let used = self.containers.iter().map(|container| container.shape);
        let keys = self.shapes.keys(used, self.budget, at)?;
        Ok(Tree {
            root,
            trailing,
            containers: self.containers,
            offsets: self.offsets,
            shared: self.shared,
            own: self.own,
            keys,
            texts: self.texts,
            numbers: self.numbers,
        })
    }

    pub(super) fn integer(&mut self, number: i128, at: usize) -> HistoryStep<Value> {
        let Ok(signed) = i64::try_from(number) else {
            return Ok(match u64::try_from(number) {
                Ok(unsigned) => Value::Unsigned(self.number(unsigned, at)?),
                Err(_) => Value::Huge,
            });
        };
        Ok(match ShortInt::new(signed) {
            Some(short) => Value::Int(short),
            None => Value::Wide(self.number(signed.cast_unsigned(), at)?),
        })
    }

    pub(super) fn float(&mut self, bits: u64, at: usize) -> HistoryStep<Value> {
        self.number(bits, at).map(Value::Float)
    }

    fn number(&mut self, bits: u64, at: usize) -> HistoryStep<NumberId> {
        let id = NumberId::new(self.numbers.len()).ok_or_else(|| too_many(at))?;
        self.budget.take::<u64>(1, at)?;
        self.numbers.push(bits);
        Ok(id)
    }

    pub(super) fn text(&mut self, text: &'a [u8], at: usize) -> HistoryStep<Value> {
        if let Some(&known) = self.text_ids.get(text) {
            return Ok(Value::Text(known));
        }
        let id = TextId::new(self.texts.len()).ok_or_else(|| too_many(at))?;
        self.budget.take::<[&[u8]; 4]>(1, at)?;
        self.texts.push(text);
        self.text_ids.insert(text, id);
        Ok(Value::Text(id))
    }

    /// A container without elements.
    pub(super) fn container(&mut self, at: usize) -> HistoryStep<ContainerId> {
        let id = ContainerId::new(self.containers.len()).ok_or_else(|| too_many(at))?;
        self.budget.take::<Container>(1, at)?;
        self.offsets.next(id, at);
        self.containers.push(Container::new(at));
        Ok(id)
    }

    /// Adds elements to a list or tuple.
    pub(super) fn append(&mut self, to: ContainerId, elements: &[Value], at: usize) -> HistoryStep {
        self.extend(to, elements.len(), elements.iter().copied(), at)
    }

    /// Adds keys and values, in turn, to a dict.
    pub(super) fn set(&mut self, to: ContainerId, pairs: &[Value], at: usize) -> HistoryStep {
        let pairs = pairs.chunks_exact(2);
        let mut shape = self.containers[to.index()].shape;
        for pair in pairs.clone() {
            let next = self.shapes.followed_by(shape, pair[0], self.budget, at)?;
            shape = next.ok_or_else(|| too_many(at))?;
        }
        self.containers[to.index()].shape = shape;
        self.extend(to, pairs.len(), pairs.map(|pair| pair[1]), at)
    }

    fn extend(
        &mut self,
        to: ContainerId,
        more: usize,
        values: impl Iterator<Item = Value>,
        at: usize,
    ) -> HistoryStep {
        self.budget.take::<Value>(more, at)?;
        let end = self.shared.len();
        let container = &mut self.containers[to.index()];
        let put = match container.items() {
            Items::Shared { length: 0, .. } => {
                self.shared.extend(values);
                container.put(Items::Shared { first: end, length: more })
            }
            Items::Shared { first, length } if first + length == end => {
                self.shared.extend(values);
                container.put(Items::Shared { first, length: length + more })
            }
            Items::Shared { first, length } => {
                self.budget.take::<Value>(length, at)?;
                self.budget.take::<Vec<Value>>(1, at)?;
                let before = &self.shared[first..][..length];
                self.own.push(before.iter().copied().chain(values).collect());
                container.put(Items::Own { list: self.own.len() - 1 })
            }
            Items::Own { list } => {
                self.own[list].extend(values);
                Some(())
            }
        };
        put.ok_or_else(|| too_many(at))
    }
}

fn too_many(at: usize) -> SnapshotError {
    SnapshotError::Malformed {
        opcode: "the pickle",
        at,
        problem: "it holds more than 2^32 objects of one kind",
    }
}
