//! The blocks that are not placed yet, by lifetime: which of those that live within an interval comes first in
//! an order?

mod bits;
mod tree;

use crate::instance::{Instance, Item};
use bits::Bits;
use tree::Tree;

/// The blocks of the longest lists that are searched as bits: they take blocks × sections / 4 bytes.
const BITS_LIMIT: usize = 4096;

/// The candidates, in what is faster for their number.
#[derive(Clone)]
pub(super) enum Candidates {
    Bits(Bits),
    Tree(Tree),
}

impl Candidates {
    pub(super) fn new(instance: &Instance) -> Self {
        if instance.blocks.len() <= BITS_LIMIT {
            Self::Bits(Bits::new(instance.blocks.len(), instance.loads.len()))
        } else {
            Self::tree(&instance.blocks)
        }
    }

    pub(super) fn tree(blocks: &[Item]) -> Self {
        Self::Tree(Tree::new(blocks))
    }

    /// Makes these blocks the candidates, ranked in this order.
    pub(super) fn fill(&mut self, blocks: &[Item], order: &[u32]) {
        match self {
            Self::Bits(bits) => bits.fill(blocks, order),
            Self::Tree(tree) => tree.fill(order),
        }
    }

    /// Takes the first candidate that lives within the sections `start..end`, and returns its rank.
    #[inline]
    pub(super) fn take(&mut self, start: u32, end: u32) -> Option<u32> {
        match self {
            Self::Bits(bits) => bits.take(start, end),
            Self::Tree(tree) => tree.take(start, end),
        }
    }
}
