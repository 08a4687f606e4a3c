//! The keys of dicts: each sequence of keys once.

use super::value::{ShapeId, Value};
use crate::budget::Budget;
use crate::error::SnapshotError;
use std::collections::BTreeMap;

/// A sequence of keys: another one, and one key more.
#[derive(Clone, Copy, Debug)]
struct Shape {
    before: ShapeId,
    key: Value,
    /// The one that was last found to follow. Mostly it is the only one.
    next: Option<(Value, ShapeId)>,
}

/// The sequences of keys, as they are met.
#[derive(Debug)]
pub(super) struct Shapes {
    /// The first is the empty one.
    shapes: Vec<Shape>,
    ids: BTreeMap<(ShapeId, Value), ShapeId>,
}

impl Default for Shapes {
    fn default() -> Self {
        let empty = Shape { before: ShapeId::EMPTY, key: Value::None, next: None };
        Self { shapes: vec![empty], ids: BTreeMap::new() }
    }
}

impl Shapes {
    /// The keys of `before`, and then `key`; `None` if there are too many.
    pub(super) fn followed_by(
        &mut self,
        before: ShapeId,
        key: Value,
        budget: &mut Budget,
        at: usize,
    ) -> Result<Option<ShapeId>, SnapshotError> {
        if let Some((last, id)) = self.shapes[before.index()].next
            && last == key
        {
            return Ok(Some(id));
        }
        let id = match self.ids.get(&(before, key)) {
            Some(&known) => known,
            None => {
                budget.take::<[Shape; 3]>(1, at)?;
                let Some(id) = ShapeId::new(self.shapes.len()) else { return Ok(None) };
                self.shapes.push(Shape { before, key, next: None });
                self.ids.insert((before, key), id);
                id
            }
        };
        self.shapes[before.index()].next = Some((key, id));
        Ok(Some(id))
    }

    /// The keys of the shapes that are `used`.
    pub(super) fn keys(
        self,
        used: impl Iterator<Item = ShapeId>,
        budget: &mut Budget,
        at: usize,
    ) -> Result<Keys, SnapshotError> {
        budget.take::<(usize, usize)>(self.shapes.len(), at)?;
        let mut keys = Keys { spans: vec![(0, 0); self.shapes.len()], keys: Vec::new() };
        for shape in used {
            if shape == ShapeId::EMPTY || keys.spans[shape.index()] != (0, 0) {
                continue;
            }
            let first = keys.keys.len();
            let mut rest = shape;
            while rest != ShapeId::EMPTY {
                let Shape { before, key, .. } = self.shapes[rest.index()];
                keys.keys.push(key);
                rest = before;
            }
            keys.keys[first..].reverse();
            keys.spans[shape.index()] = (first, keys.keys.len());
            budget.take::<Value>(keys.keys.len() - first, at)?;
        }
        Ok(keys)
    }
}

/// The keys of each shape.
#[derive(Debug)]
pub(super) struct Keys {
    spans: Vec<(usize, usize)>,
    keys: Vec<Value>,
}

impl Keys {
    pub(super) fn of(&self, shape: ShapeId) -> &[Value] {
        let (first, end) = self.spans[shape.index()];
        &self.keys[first..end]
    }
}
