//! What is allocated at the cursor, by name, as rows that open and close.

use std::collections::BTreeSet;
use xmem::Bytes;
use xmem::predict::{BlockKey, Timeline, TreeNode};

/// Names from the outermost in.
pub(crate) type NodePath = Vec<String>;

/// The tree at a moment.
#[derive(Clone, Debug)]
pub(crate) struct TreeList {
    root: TreeNode,
    open: BTreeSet<NodePath>,
    pub(crate) selected: usize,
    rows: Vec<TreeRow>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeRow {
    pub(crate) path: NodePath,
    pub(crate) bytes: Bytes,
    pub(crate) blocks: u64,
    pub(crate) has_children: bool,
    pub(crate) is_open: bool,
}

impl TreeRow {
    pub(crate) fn depth(&self) -> usize {
        self.path.len().saturating_sub(1)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

impl TreeList {
    pub(super) fn new(timeline: &Timeline, moment: u32, key: BlockKey) -> Self {
        let root = timeline.tree(moment, key);
        let mut list = Self { root, open: BTreeSet::new(), selected: 0, rows: Vec::new() };
        list.arrange(None);
        list
    }

    /// Shows another moment, with the same nodes open and the same one selected.
    pub(super) fn show(&mut self, timeline: &Timeline, moment: u32, key: BlockKey) {
        let selected = self.selected().map(|row| row.path.clone());
        self.root = timeline.tree(moment, key);
        self.arrange(selected.as_ref());
    }

    pub(crate) fn rows(&self) -> &[TreeRow] {
        &self.rows
    }

    pub(crate) fn selected(&self) -> Option<&TreeRow> {
        self.rows.get(self.selected)
    }

    pub(super) fn select(&mut self, row: usize) {
        self.selected = row.min(self.rows.len().saturating_sub(1));
    }

    /// Opens or closes the selected node; false if there is nothing in it.
    pub(super) fn toggle(&mut self) -> bool {
        let Some(row) = self.selected().filter(|row| row.has_children) else { return false };
        let path = row.path.clone();
        if !self.open.remove(&path) {
            self.open.insert(path.clone());
        }
        self.arrange(Some(&path));
        true
    }

    /// Selects a node, and opens those that it is in.
    pub(super) fn reveal(&mut self, path: &NodePath) {
        for depth in 1..path.len() {
            self.open.insert(path[..depth].to_vec());
        }
        self.arrange(Some(path));
    }

    /// Every node, whether it is shown or not, in the order of the rows.
    pub(super) fn all(&self) -> Vec<NodePath> {
        let mut all = Vec::new();
        visit(&self.root, &mut Vec::new(), &mut |path, _| {
            all.push(path.clone());
            true
        });
        all
    }

    /// The rows of the blocks in the selected node.
    pub(super) fn blocks(&self) -> Vec<u32> {
        let Some(row) = self.selected() else { return Vec::new() };
        let child = |node: &'_ TreeNode, name: &String| -> Option<usize> {
            node.children.iter().position(|child| child.name == *name)
        };
        let mut node = &self.root;
        for name in &row.path {
            let Some(at) = child(node, name) else { return Vec::new() };
            node = &node.children[at];
        }
        let mut blocks = node.own.clone();
        let mut rest: Vec<&TreeNode> = node.children.iter().collect();
        while let Some(node) = rest.pop() {
            blocks.extend(&node.own);
            rest.extend(&node.children);
        }
        blocks
    }

    fn arrange(&mut self, selected: Option<&NodePath>) {
        let (open, mut rows) = (&self.open, Vec::new());
        visit(&self.root, &mut Vec::new(), &mut |path, node| {
            let has_children = !node.children.is_empty();
            let is_open = has_children && open.contains(path);
            let (bytes, blocks) = (node.bytes, node.blocks);
            rows.push(TreeRow { path: path.clone(), bytes, blocks, has_children, is_open });
            is_open
        });
        self.rows = rows;
        let again = selected.and_then(|path| self.rows.iter().position(|row| row.path == *path));
        self.select(again.unwrap_or(self.selected));
    }
}

/// Calls `each` for the nodes in a node, and for those in it where `each` says so.
fn visit(
    node: &TreeNode,
    path: &mut NodePath,
    each: &mut impl FnMut(&NodePath, &TreeNode) -> bool,
) {
    for child in &node.children {
        path.push(child.name.clone());
        if each(path, child) {
            visit(child, path, each);
        }
        path.pop();
    }
}
