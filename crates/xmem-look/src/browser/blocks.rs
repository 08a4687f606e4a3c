//! The blocks that are allocated at the cursor, the largest first.

use std::cmp::Reverse;
use xmem::predict::Timeline;

/// The blocks at a moment.
#[derive(Clone, Debug)]
pub(crate) struct BlockList {
    /// The rows of the blocks in the timeline.
    pub(crate) rows: Vec<u32>,
    pub(crate) selected: usize,
    /// The node of the tree whose blocks these are; none for all.
    pub(crate) of: Option<String>,
}

impl BlockList {
    pub(super) fn new(timeline: &Timeline, moment: u32) -> Self {
        let mut list = Self { rows: Vec::new(), selected: 0, of: None };
        list.show(timeline, moment);
        list
    }

    /// Shows all blocks of a moment, with the same one selected if it is still there.
    pub(super) fn show(&mut self, timeline: &Timeline, moment: u32) {
        self.set(timeline, timeline.allocated_at(moment).map(|row| row as u32).collect());
        self.of = None;
    }

    /// Shows the blocks of a node of the tree.
    pub(super) fn show_node(&mut self, timeline: &Timeline, rows: Vec<u32>, name: &str) {
        self.set(timeline, rows);
        self.of = Some(name.to_owned());
    }

    fn set(&mut self, timeline: &Timeline, mut rows: Vec<u32>) {
        let selected = self.rows.get(self.selected).copied();
        rows.sort_by_key(|&row| (Reverse(timeline.blocks[row as usize].size), row));
        self.rows = rows;
        let again = self.rows.iter().position(|row| Some(*row) == selected);
        self.select(again.unwrap_or_default());
    }

    pub(super) fn select(&mut self, row: usize) {
        self.selected = row.min(self.rows.len().saturating_sub(1));
    }
}
