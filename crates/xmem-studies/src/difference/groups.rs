//! What is allocated at the peak of a run, by name.

use super::group_row::GroupFigures;
use std::collections::BTreeMap;
use xmem_analyzer::Role;
use xmem_predict::{BlockKey, Timeline, TimelineBlock};

/// What memory is compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DifferenceKey {
    /// Roles.
    #[default]
    Role,
    /// Modules, by their path.
    Module,
    /// Lines of the script, each with its function.
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

/// Every module of a run that has blocks, in the order of the first, with all that it requests in the run.
pub(super) fn modules(timeline: &Timeline) -> Vec<(&str, GroupFigures)> {
    let mut place = vec![None; timeline.texts().len()];
    let mut modules: Vec<(&str, GroupFigures)> = Vec::new();
    for block in &timeline.blocks {
        let at = *place[block.module.0 as usize].get_or_insert_with(|| {
            modules.push((timeline.text(block.module), GroupFigures::NONE));
            modules.len() - 1
        });
        modules[at].1 = modules[at].1 + own_request(block);
    }
    modules
}

/// What the program requests for a block: the allocator may give it more. Workspaces count nothing: they belong to what
/// happens to be the first to need one.
pub(super) fn own_request(block: &TimelineBlock) -> GroupFigures {
    match block.role {
        Role::Workspace => GroupFigures::NONE,
        _ => GroupFigures { bytes: block.requested, blocks: Some(1) },
    }
}
