//! The values of one pickle: tables, and ids into them.
//!
//! Files have millions of small dicts with the same keys. The elements of all containers stand in
//! one table, one after the other, and of a dict the values alone: its keys are a [`ShapeId`], the
//! same one for all dicts with these keys.

use super::shapes::Keys;
use super::value::{ContainerId, ShapeId, TextId, Value};

/// A list, tuple or dict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container {
    /// Its first element among those of all containers, or its row in `own`.
    first: u32,
    /// The number of elements it has there, or [`Self::OWN`].
    length: u32,
    /// Its keys, if it is a dict.
    pub(super) shape: ShapeId,
    /// Offset of the instruction that made it, but for multiples of 2^32.
    at: u32,
}

impl Container {
    const OWN: u32 = u32::MAX;

    pub(super) fn new(at: usize) -> Self {
        Self { first: 0, length: 0, shape: ShapeId::EMPTY, at: at as u32 }
    }

    pub(super) fn items(&self) -> Items {
        match self.length {
            Self::OWN => Items::Own { list: self.first as usize },
            length => Items::Shared { first: self.first as usize, length: length as usize },
        }
    }

    /// Tells where its elements are; `None` if the place is out of reach.
    pub(super) fn put(&mut self, items: Items) -> Option<()> {
        let (first, length) = match items {
            Items::Shared { first, length } => (first, u32::try_from(length).ok()?),
            Items::Own { list } => (list, Self::OWN),
        };
        self.first = u32::try_from(first).ok()?;
        self.length = length;
        Some(())
    }
}

/// The elements of a container; of a dict, its values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Items {
    /// Among those of all containers.
    Shared { first: usize, length: usize },
    /// In a list of its own, since it grew after others had been filled.
    Own { list: usize },
}

/// The offsets of containers, which are made in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    /// For each multiple of 2^32 bytes, the first container beyond.
    beyond: Vec<ContainerId>,
}

impl Offsets {
    /// Notes that `id` is the next container, made at byte `at`.
    pub(super) fn next(&mut self, id: ContainerId, at: usize) {
        while (self.beyond.len() as u64) < (at as u64) >> 32 {
            self.beyond.push(id);
        }
    }

    fn of(&self, id: ContainerId, low: u32) -> usize {
        let high = self.beyond.partition_point(|&first| first <= id) as u64;
        (high << 32 | u64::from(low)) as usize
    }
}

/// Everything that a pickle built; `'a` is the file, in which the texts stay.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    /// The value that the pickle is of.
    pub(crate) root: Value,
    /// Bytes after the end of the pickle.
    pub(crate) trailing: usize,
    pub(super) containers: Vec<Container>,
    pub(super) offsets: Offsets,
    pub(super) shared: Vec<Value>,
    pub(super) own: Vec<Vec<Value>>,
    pub(super) keys: Keys,
    pub(super) texts: Vec<&'a [u8]>,
    /// Integers that are not short, and floats as their bits.
    pub(super) numbers: Vec<u64>,
}

impl<'a> Tree<'a> {
    /// The elements of a container; of a dict, its values.
    pub(crate) fn items(&self, id: ContainerId) -> &[Value] {
        match self.containers[id.index()].items() {
            Items::Shared { first, length } => &self.shared[first..][..length],
            Items::Own { list } => &self.own[list],
        }
    }

    /// The keys of a dict, as many as it has values.
    pub(crate) fn keys(&self, id: ContainerId) -> &[Value] {
        self.keys.of(self.containers[id.index()].shape)
    }

    /// Offset of the instruction that made a container.
    pub(crate) fn at(&self, id: ContainerId) -> usize {
        self.offsets.of(id, self.containers[id.index()].at)
    }

    pub(crate) fn container_count(&self) -> usize {
        self.containers.len()
    }

    /// The number of containers, elements, keys and values.
    pub(crate) fn size(&self) -> usize {
        let elements: usize = self.containers.iter().map(|container| self.length(container)).sum();
        self.containers.len() + elements
    }

    fn length(&self, container: &Container) -> usize {
        let items = match container.items() {
            Items::Shared { length, .. } => length,
            Items::Own { list } => self.own[list].len(),
        };
        items + self.keys.of(container.shape).len()
    }

    /// A text as the file has it; UTF-8 unless the writer had unpaired surrogates.
    pub(crate) fn text(&self, id: TextId) -> &'a [u8] {
        self.texts[id.index()]
    }

    pub(crate) fn text_count(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn integer(&self, value: Value) -> Option<i64> {
        match value {
            Value::Int(short) => Some(short.get()),
            Value::Wide(id) => Some(self.numbers[id.index()].cast_signed()),
            _ => None,
        }
    }

    /// The value as an integer without sign; a negative one as it is.
    pub(crate) fn natural(&self, value: Value) -> Option<Result<u64, i64>> {
        match value {
            Value::Unsigned(id) => Some(Ok(self.numbers[id.index()])),
            other => self.integer(other).map(|n| u64::try_from(n).map_err(|_| n)),
        }
    }

    pub(crate) fn float(&self, value: Value) -> Option<f64> {
        match value {
            Value::Float(id) => Some(f64::from_bits(self.numbers[id.index()])),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_beyond_four_gibibytes_are_kept() {
        let mut offsets = Offsets::default();
        let places =
            [2, 7, 0xffff_ffff, 0x1_0000_0000, 0x1_0000_0009, 0x4_1234_5678, 0x4_1234_5679];
        let made: Vec<_> = places
            .into_iter()
            .enumerate()
            .map(|(row, place)| {
                let id = ContainerId::new(row).unwrap();
                offsets.next(id, place);
                (id, place)
            })
            .collect();
        for (id, place) in made {
            assert_eq!(offsets.of(id, place as u32), place);
        }
    }
}
