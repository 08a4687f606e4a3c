//! The tensors that layers read, found by their shapes: a trace has no tensor ids.
//!
//! A tensor that an operator reads is looked for among those of its size that are alive. One that is freed in the
//! operator's own backward node comes first: the node has saved it. Then one that has to be read again: a tensor that
//! nobody has read yet, or whose last reader's backward node adds up gradients of its shape. Of several, the one that
//! was made last.

use crate::block_size::rounded;
use xmem_offload::LayerId;
use xmem_types::{BlockId, Bytes};

/// A tensor.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) block: BlockId,
    /// The size of its block.
    pub(super) size: Bytes,
    /// Its shape, as far as it is known.
    pub(super) dims: Option<Vec<u64>>,
    /// The layer that made it.
    pub(super) made_by: Option<LayerId>,
    /// Whether it has to be read again.
    pub(super) expected: Expected,
    /// False for views of a part of a block.
    pub(super) is_whole: bool,
}

/// Whether a tensor has to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Expected {
    /// The gradients say that its last reader was its last one.
    No,
    /// Nothing is known.
    Unknown,
    /// Nobody has read it yet, or gradients say so.
    Yes,
}

/// A tensor argument.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) dims: Vec<u64>,
    /// The bytes of its elements; several where the type is not recorded.
    pub(super) sizes: Vec<Bytes>,
}

/// The tensors that are alive, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) all: Vec<Value>,
    pub(super) counts: Counts,
}

/// How the tensors were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// With one candidate, or one that has to be read.
    pub(super) certain: usize,
    /// The latest of several.
    pub(super) likely: usize,
    /// None of this size is alive.
    pub(super) missing: usize,
}

impl Values {
    /// The tensor that is wanted; none of `taken`. `is_saved` is true for blocks that the operator's backward node
    /// frees. Counts how it was found.
    pub(super) fn find(
        &mut self,
        wanted: &Wanted,
        taken: &[usize],
        is_saved: impl Fn(BlockId) -> bool,
    ) -> Option<usize> {
        let candidates: Vec<usize> = (0..self.all.len())
            .filter(|row| !taken.contains(row))
            .filter(|&row| self.all[row].may_be(wanted))
            .collect();
        let evidence = |row: usize| (is_saved(self.all[row].block), self.all[row].expected);
        let rank = |&row: &usize| (evidence(row), row);
        let Some(best) = candidates.iter().copied().max_by_key(rank) else {
            self.counts.missing += 1;
            return None;
        };
        let alike = candidates.iter().filter(|&&row| evidence(row) == evidence(best)).count();
        let has_evidence = evidence(best) >= (false, Expected::Yes);
        let is_certain = candidates.len() == 1 || has_evidence && alike == 1;
        *(if is_certain { &mut self.counts.certain } else { &mut self.counts.likely }) += 1;
        self.all[best].dims.get_or_insert_with(|| wanted.dims.clone());
        Some(best)
    }

    /// Forgets the tensors of blocks that are gone.
    pub(super) fn retain(&mut self, is_alive: impl Fn(BlockId) -> bool) {
        self.all.retain(|value| is_alive(value.block));
    }
}

impl Value {
    fn may_be(&self, wanted: &Wanted) -> bool {
        if !self.is_whole {
            return wanted.sizes.iter().any(|&size| size <= self.size);
        }
        let same_size = wanted.sizes.iter().any(|&size| rounded(size) == self.size);
        same_size && self.dims.as_ref().is_none_or(|dims| dims == &wanted.dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(block: u32, expected: Expected) -> Value {
        Value {
            block: BlockId(block),
            size: Bytes(1024),
            dims: None,
            made_by: None,
            expected,
            is_whole: true,
        }
    }

    /// A residual block: the input of the block has been read and is wanted again; the output of the last
    /// convolution was made later, and its normalization was its only reader.
    #[test]
    fn an_addition_reads_the_tensor_whose_gradient_is_added_up() {
        let all = vec![value(0, Expected::Yes), value(1, Expected::No), value(2, Expected::Yes)];
        let mut values = Values { all, counts: Counts::default() };
        let wanted = Wanted { dims: vec![256], sizes: vec![Bytes(1024)] };
        let first = values.find(&wanted, &[], |_| false).expect("a tensor");
        let second = values.find(&wanted, &[first], |_| false).expect("a tensor");
        assert_eq!((values.all[first].block, values.all[second].block), (BlockId(2), BlockId(0)));
        assert_eq!(values.counts, Counts { certain: 1, likely: 1, missing: 0 });
    }

    #[test]
    fn what_its_backward_node_frees_is_an_operators_own_tensor() {
        let all = vec![value(0, Expected::No), value(1, Expected::Yes)];
        let mut values = Values { all, counts: Counts::default() };
        let wanted = Wanted { dims: vec![256], sizes: vec![Bytes(1024)] };
        let found = values.find(&wanted, &[], |block| block == BlockId(0));
        assert_eq!((found, values.counts.certain), (Some(0), 1));
    }

    #[test]
    fn a_tensor_of_another_size_or_shape_is_not_taken() {
        let mut values = Values { all: vec![value(0, Expected::Yes)], counts: Counts::default() };
        values.all[0].dims = Some(vec![2, 128]);
        for (dims, size) in [(vec![256], 1024), (vec![2, 128], 2048)] {
            assert_eq!(
                values.find(&Wanted { dims, sizes: vec![Bytes(size)] }, &[], |_| false),
                None
            );
        }
        assert_eq!(values.counts.missing, 2);
        let found =
            values.find(&Wanted { dims: vec![2, 128], sizes: vec![Bytes(1000)] }, &[], |_| false);
        assert_eq!(found, Some(0));
    }
}
