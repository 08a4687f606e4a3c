//! What is allocated at the peak of a run, by name.

use super::row::GroupFigures;
use std::collections::BTreeMap;
use xmem_predict::{BlockKey, Timeline, TimelineBlock};

/// What memory is compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DifferenceKey {
    /// Roles.
    #[default]
    Role,
    /// Modules, by their path.
    Module,
    /// Functions of the script: file and function of the line.
    Line,
    /// Operators.
    Op,
}

impl DifferenceKey {
    /// Every key.
    pub const ALL: [Self; 4] = [Self::Role, Self::Module, Self::Line, Self::Op];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.of_blocks().name()
    }

    /// The same of a timeline.
    const fn of_blocks(self) -> BlockKey {
        match self {
            Self::Role => BlockKey::Role,
            Self::Module => BlockKey::Module,
            Self::Line => BlockKey::Line,
            Self::Op => BlockKey::Op,
        }
    }

    /// The name of a block by this key; empty where it is not known.
    fn of<'t>(self, timeline: &'t Timeline, block: &TimelineBlock) -> &'t str {
        match self {
            Self::Role => block.role.name(),
            Self::Module => timeline.text(block.module),
            Self::Line => timeline.text(block.line),
            Self::Op => timeline.text(block.op),
        }
    }
}

/// The groups of blocks at the peak of allocated memory, by their full name.
pub(super) fn at_peak(timeline: &Timeline, key: DifferenceKey) -> BTreeMap<&str, GroupFigures> {
    let mut groups: BTreeMap<&str, GroupFigures> = BTreeMap::new();
    for row in timeline.allocated_at(timeline.peak) {
        let block = &timeline.blocks[row];
        let group = groups.entry(key.of(timeline, block)).or_insert(GroupFigures::NONE);
        *group = *group + GroupFigures { bytes: block.size, blocks: Some(1) };
    }
    groups
}

/// Every module of a run that has blocks, in the order of the first.
pub(super) fn modules(timeline: &Timeline) -> Vec<&str> {
    let mut seen = vec![false; timeline.texts().len()];
    let mut names = Vec::new();
    for block in &timeline.blocks {
        if !std::mem::replace(&mut seen[block.module.0 as usize], true) {
            names.push(timeline.text(block.module));
        }
    }
    names
}
