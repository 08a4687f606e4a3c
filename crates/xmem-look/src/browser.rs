//! What is looked at: a part of the run, a moment in it, and a row of a list. Keys change it, and nothing else does.

mod blocks;
mod chart;
mod keys;
mod search;
mod tree;

pub(crate) use blocks::BlockList;
pub(crate) use chart::{Chart, Column, phase};
pub(crate) use tree::{TreeList, TreeRow};

use crate::layout::{Layout, List};
use std::ops::Range;
use xmem::predict::{BlockKey, Timeline, TimelineMoment};

/// A run, and what is said about it at the top.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name of the input.
    pub name: String,
    /// The device.
    pub device: String,
    /// The verdict in words.
    pub verdict: String,
    /// The run.
    pub timeline: Timeline,
}

/// The state of the browser.
#[derive(Clone, Debug)]
pub struct Browser {
    pub(crate) subject: Subject,
    /// Columns and rows of the terminal.
    size: (u16, u16),
    /// Columns of the chart.
    columns: usize,
    /// The moments that the chart shows.
    pub(crate) window: Range<u32>,
    pub(crate) cursor: u32,
    pub(crate) chart: Chart,
    pub(crate) key: BlockKey,
    pub(crate) list: List,
    pub(crate) tree: TreeList,
    pub(crate) blocks: BlockList,
    /// The text that is being typed for a search.
    pub(crate) prompt: Option<String>,
    /// The text of the last search.
    pub(crate) query: String,
    /// A remark about the last key.
    pub(crate) remark: String,
    pub(crate) shows_help: bool,
}

impl Browser {
    /// Looks at all of a run, at the peak of allocated memory.
    #[must_use]
    pub fn new(subject: Subject) -> Self {
        let timeline = &subject.timeline;
        let count = timeline.moments.len() as u32;
        let within = timeline.within.clone();
        let window = if within.is_empty() { 0..count } else { within };
        let cursor = timeline.peak.min(count.saturating_sub(1));
        let key = BlockKey::Role;
        let (columns, size) = (1, (1, 1));
        let mut browser = Self {
            chart: Chart::new(timeline, &window, columns),
            tree: TreeList::new(timeline, cursor, key),
            blocks: BlockList::new(timeline, cursor),
            subject,
            size,
            columns,
            window,
            cursor,
            key,
            list: List::Tree,
            prompt: None,
            query: String::new(),
            remark: String::new(),
            shows_help: false,
        };
        browser.fit(80, 24);
        browser
    }

    /// The size of the terminal, in columns and rows.
    pub fn fit(&mut self, width: u16, height: u16) {
        self.size = (width, height);
        let columns = self.layout().columns();
        if columns != self.columns {
            self.columns = columns;
            self.redraw();
        }
    }

    /// The places of the parts on the screen.
    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.size.0, self.size.1, self.list)
    }

    /// All moments that can be shown.
    fn whole(&self) -> Range<u32> {
        let timeline = &self.subject.timeline;
        let within = timeline.within.clone();
        if within.is_empty() { 0..timeline.moments.len() as u32 } else { within }
    }

    /// Computes the chart of the window.
    fn redraw(&mut self) {
        self.chart = Chart::new(&self.subject.timeline, &self.window, self.columns);
    }

    /// Moves the cursor, and the window with it if it would leave it.
    fn go_to(&mut self, moment: u32) {
        let whole = self.whole();
        if whole.is_empty() {
            return;
        }
        let moment = moment.clamp(whole.start, whole.end - 1);
        if !self.window.contains(&moment) {
            let length = self.window.end - self.window.start;
            let start = moment.saturating_sub(length / 2).max(whole.start);
            let start = start.min(whole.end.saturating_sub(length)).max(whole.start);
            self.window = start..(start + length).min(whole.end);
            self.redraw();
        }
        if moment != self.cursor {
            self.cursor = moment;
            self.tree.show(&self.subject.timeline, moment, self.key);
            self.blocks.show(&self.subject.timeline, moment);
        }
    }

    /// The figures at the cursor; none of an empty run.
    pub(crate) fn figures(&self) -> Option<&TimelineMoment> {
        self.subject.timeline.moments.get(self.cursor as usize)
    }
}
