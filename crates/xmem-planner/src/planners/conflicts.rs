//! Blocks by lifetime: those of a growing set that conflict with a block.
//!
//! A block that is live when another one begins is found in a tree of sections, whose nodes have the blocks that live through
//! all of their sections and not through all of their parent's. A block that begins later is found in the list of all
//! blocks by start.

use crate::instance::{Instance, Item};

pub(super) struct Conflicts<'a> {
    instance: &'a Instance,
    /// A heap: the children of node k are 2k and 2k + 1, and the first leaf is `leaves`.
    nodes: Vec<Vec<u32>>,
    leaves: usize,
    /// All blocks by start.
    by_start: Vec<u32>,
    /// By section: where its blocks begin in `by_start`.
    begins: Vec<u32>,
    /// By block: true if it is in the set.
    members: Vec<bool>,
}

impl<'a> Conflicts<'a> {
    /// The empty set of blocks of an instance.
    pub(super) fn new(instance: &'a Instance) -> Self {
        let leaves = instance.loads.len().next_power_of_two();
        let mut by_start: Vec<u32> = (0..instance.blocks.len() as u32).collect();
        by_start.sort_by_key(|&block| instance.blocks[block as usize].start);
        let begin = |section: u32| {
            let before = |&block: &u32| instance.blocks[block as usize].start < section;
            by_start.partition_point(before) as u32
        };
        Self {
            instance,
            nodes: vec![Vec::new(); 2 * leaves],
            leaves,
            begins: (0..=instance.sections()).map(begin).collect(),
            by_start,
            members: vec![false; instance.blocks.len()],
        }
    }

    pub(super) fn insert(&mut self, block: u32) {
        let item = &self.instance.blocks[block as usize];
        self.members[block as usize] = true;
        let mut start = item.start as usize + self.leaves;
        let mut end = item.end as usize + self.leaves;
        while start < end {
            if start % 2 == 1 {
                self.nodes[start].push(block);
                start += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                self.nodes[end].push(block);
            }
            start /= 2;
            end /= 2;
        }
    }

    /// At least as many as conflict with `item`.
    pub(super) fn most(&self, item: &Item) -> usize {
        let live: usize = self.through(item).map(|node| self.nodes[node].len()).sum();
        live + self.later(item).len()
    }

    /// Calls `each` with each member that conflicts with `item`.
    pub(super) fn each(&self, item: &Item, mut each: impl FnMut(u32)) {
        for node in self.through(item) {
            self.nodes[node].iter().for_each(|&block| each(block));
        }
        let later = self.later(item).iter();
        later.filter(|&&block| self.members[block as usize]).for_each(|&block| each(block));
    }

    /// The nodes with the blocks that live in the first section of `item`.
    fn through(&self, item: &Item) -> impl Iterator<Item = usize> {
        let leaf = item.start as usize + self.leaves;
        std::iter::successors(Some(leaf), |&node| (node > 1).then_some(node / 2))
    }

    /// The blocks, in the set or not, that begin later than `item` and before it ends.
    fn later(&self, item: &Item) -> &[u32] {
        let begin = |section: u32| self.begins[section as usize] as usize;
        &self.by_start[begin(item.start + 1)..begin(item.end)]
    }
}
