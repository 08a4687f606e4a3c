//! What is allocated at a moment, as a tree.

use super::{BlockKey, Timeline};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use xmem_types::Bytes;

/// A part of the memory that is allocated at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeNode {
    /// Its name; empty at the root, and where nothing is known of its blocks.
    pub name: String,
    /// Bytes of all blocks in it.
    pub bytes: Bytes,
    /// All blocks in it.
    pub blocks: u64,
    /// The rows of the blocks that are in none of its parts, in the order of allocation.
    pub own: Vec<u32>,
    /// Its parts, largest first.
    pub children: Vec<TreeNode>,
}

impl Timeline {
    /// The memory that the program holds at `moment`, by `key`. The root has all of it.
    #[must_use]
    pub fn tree(&self, moment: u32, key: BlockKey) -> TreeNode {
        let mut tree = Growing { nodes: vec![TreeNode::default()], ..Growing::default() };
        let mut known: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        for row in self.allocated_at(moment) {
            let block = &self.blocks[row];
            let path = known
                .entry(Self::group_by(block, key))
                .or_insert_with(|| tree.path(self.names(block, key)));
            for &node in path.iter() {
                tree.nodes[node].bytes += block.size;
                tree.nodes[node].blocks += 1;
            }
            let innermost = path.last().copied().unwrap_or_default();
            tree.nodes[innermost].own.push(row as u32);
        }
        tree.finish()
    }
}

/// A tree in the making: nodes by number, the root first, each after its parent.
#[derive(Default)]
struct Growing {
    nodes: Vec<TreeNode>,
    parents: Vec<usize>,
    children: FxHashMap<(usize, String), usize>,
}

impl Growing {
    /// The nodes from the root to the innermost of `names`. What has no name is a part without one.
    fn path(&mut self, mut names: Vec<String>) -> Vec<usize> {
        if names.is_empty() {
            names.push(String::new());
        }
        let mut path = vec![0];
        for name in names {
            let parent = path[path.len() - 1];
            let next = self.nodes.len();
            let node = *self.children.entry((parent, name)).or_insert(next);
            if node == next {
                self.nodes.push(TreeNode::default());
                self.parents.push(parent);
            }
            path.push(node);
        }
        path
    }

    fn finish(mut self) -> TreeNode {
        for ((_, name), node) in self.children {
            self.nodes[node].name = name;
        }
        while let Some(parent) = self.parents.pop() {
            let mut node = self.nodes.pop().unwrap_or_default();
            node.children
                .sort_by(|a, b| (Reverse(a.bytes), &a.name).cmp(&(Reverse(b.bytes), &b.name)));
            self.nodes[parent].children.push(node);
        }
        let mut root = self.nodes.pop().unwrap_or_default();
        root.children.sort_by(|a, b| (Reverse(a.bytes), &a.name).cmp(&(Reverse(b.bytes), &b.name)));
        root
    }
}
