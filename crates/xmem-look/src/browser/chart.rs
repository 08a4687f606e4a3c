//! Memory over the moments of a window, column by column.

use std::ops::Range;
use xmem::Bytes;
use xmem::analyzer::Phase;
use xmem::predict::{BlockKey, Timeline};

/// The window, in columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    /// The roles that have bytes, from the bottom up.
    pub(crate) groups: Vec<String>,
    pub(crate) columns: Vec<Column>,
    /// The most that is reserved.
    pub(crate) top: Bytes,
}

/// A part of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its moments; the same as in the column before if the window has fewer moments than columns.
    pub(crate) moments: Range<u32>,
    /// The moment of the highest allocated bytes.
    pub(crate) highest: u32,
    /// The bytes of each group then.
    pub(crate) bytes: Vec<Bytes>,
    /// The most that is reserved.
    pub(crate) reserved: Bytes,
    /// The phase then, and the number of the iteration from 1.
    pub(crate) phase: (Phase, Option<u32>),
}

impl Chart {
    pub(super) fn new(timeline: &Timeline, window: &Range<u32>, columns: usize) -> Self {
        let stacked = timeline.stacked_between(window, BlockKey::Role, columns, usize::MAX);
        let (points, count) = (stacked.moments.len(), window.len());
        if points == 0 {
            return Self::default();
        }
        let edge = |point: usize| window.start + (point * count / points) as u32;
        let column = |column: usize| {
            let point = column * points / columns;
            let moments = edge(point)..edge(point + 1);
            let highest = stacked.moments[point];
            let all = &timeline.moments[moments.start as usize..moments.end as usize];
            Column {
                highest,
                bytes: stacked.groups.iter().map(|group| group.bytes[point]).collect(),
                reserved: all.iter().map(|moment| moment.reserved).max().unwrap_or_default(),
                phase: phase(timeline, highest),
                moments,
            }
        };
        let columns: Vec<Column> = (0..columns).map(column).collect();
        let most = |column: &Column| column.reserved.max(column.bytes.iter().copied().sum());
        Self {
            groups: stacked.groups.iter().map(|group| group.name.clone()).collect(),
            top: columns.iter().map(most).max().unwrap_or_default(),
            columns,
        }
    }

    /// The column of a moment.
    pub(crate) fn column_of(&self, moment: u32) -> Option<usize> {
        self.columns.iter().position(|column| column.moments.contains(&moment))
    }
}

/// The phase of a moment, and its iteration.
pub(crate) fn phase(timeline: &Timeline, moment: u32) -> (Phase, Option<u32>) {
    let row = timeline.phases.partition_point(|span| span.moments.end <= moment);
    let span = timeline.phases.get(row);
    let iteration = span.and_then(|span| span.iteration).map(|id| id.0);
    (span.map_or(Phase::Init, |span| span.phase), iteration)
}
