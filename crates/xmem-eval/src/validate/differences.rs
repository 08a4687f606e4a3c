//! The origins of the differences: block by block, then put together by place.

use super::align::{Alignment, MatchKind};
use super::predicted::Predicted;
use super::result::{DifferenceGroup, DifferenceKind, difference};
use crate::rerun::ServedRequests;
use crate::side::{BlockLifetime, BlockRow};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use xmem::analyzer::Role;
use xmem::predict::{Place, Prediction};
use xmem_snapshot::Site;
use xmem_snapshot::{Snapshot, StackId};
use xmem_types::Bytes;

/// Both sides, aligned.
pub(super) struct Compared<'c> {
    pub(super) prediction: &'c Prediction<'c>,
    pub(super) snapshot: &'c Snapshot,
    pub(super) predicted: &'c Predicted,
    pub(super) recorded: &'c ServedRequests,
    pub(super) alignment: &'c Alignment,
}

/// A moment, as an event on both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) predicted: usize,
    pub(super) recorded: usize,
}

/// One block that differs.
struct Finding {
    kind: DifferenceKind,
    at_peak: i64,
    bytes: Bytes,
    ours: Option<BlockRow>,
    theirs: Option<BlockRow>,
}

/// The properties that blocks of one group share, whatever iteration and module they are of.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: DifferenceKind,
    estimated: Option<Bytes>,
    recorded: Option<Bytes>,
    role: Option<Role>,
    rule: Option<&'static str>,
    op: Option<String>,
    line: Option<String>,
    site: Site,
}

impl Compared<'_> {
    /// All differences, those that matter `at` the moment first.
    pub(super) fn differences(&self, at: At) -> Vec<DifferenceGroup> {
        let mut sites: BTreeMap<StackId, Site> = BTreeMap::new();
        let mut groups: BTreeMap<Key, DifferenceGroup> = BTreeMap::new();
        for finding in self.findings(at) {
            let site = finding.theirs.map_or_else(Site::default, |row| {
                let stack = self.recorded.stacks[row];
                sites.entry(stack).or_insert_with(|| Site::of(self.snapshot, stack)).clone()
            });
            self.add(finding, site, &mut groups);
        }
        let mut groups: Vec<DifferenceGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| (Reverse(group.at_peak.abs()), Reverse(group.bytes)));
        groups
    }

    fn findings(&self, at: At) -> Vec<Finding> {
        let mut list = Vec::new();
        let ours = &self.predicted.side.blocks;
        for (row, life) in ours.iter().enumerate() {
            let is_live = life.is_live(at.predicted);
            match self.alignment.of_predicted[row] {
                Some(partner) => {
                    let other = &self.recorded.side.blocks[partner.block];
                    let there = other.is_live(at.recorded);
                    let kind = kind(life, other, partner.kind, is_live, there);
                    list.extend(kind.map(|kind| Finding {
                        kind,
                        at_peak: difference(taken(life, is_live), taken(other, there)),
                        bytes: Bytes(life.size.get().abs_diff(other.size.get())),
                        ours: Some(row),
                        theirs: Some(partner.block),
                    }));
                }
                None if is_live || self.is_covered(life) => list.push(Finding {
                    kind: DifferenceKind::Extra,
                    at_peak: difference(taken(life, is_live), Bytes::ZERO),
                    bytes: life.size,
                    ours: Some(row),
                    theirs: None,
                }),
                None => {}
            }
        }
        for (row, life) in self.recorded.side.blocks.iter().enumerate() {
            if self.alignment.of_recorded[row].is_none() {
                let there = life.is_live(at.recorded);
                list.push(Finding {
                    kind: DifferenceKind::Missing,
                    at_peak: difference(Bytes::ZERO, taken(life, there)),
                    bytes: life.size,
                    ours: None,
                    theirs: Some(row),
                });
            }
        }
        list
    }

    /// Returns whether the block is allocated within what the recording covers.
    fn is_covered(&self, life: &BlockLifetime) -> bool {
        life.alloc.is_some_and(|alloc| self.alignment.window.contains(&alloc))
    }

    /// For a block that is only recorded, the estimate's block just before it.
    fn before(&self, finding: &Finding) -> Option<BlockRow> {
        let row = finding.theirs.filter(|_| finding.ours.is_none())?;
        let at = self.recorded.side.blocks[row].alloc?;
        self.alignment.block_before(at, &self.predicted.side)
    }

    fn add(&self, finding: Finding, site: Site, groups: &mut BTreeMap<Key, DifferenceGroup>) {
        let id = finding.ours.map(|row| self.predicted.ids[row]);
        let block = id.map(|id| self.prediction.block(id));
        let place: Option<Place> = id.map(|id| self.prediction.place(id));
        let after = self.before(&finding).map(|row| self.prediction.place(self.predicted.ids[row]));
        let near = place.as_ref().or(after.as_ref());
        let estimated = finding.ours.map(|row| self.predicted.side.blocks[row].requested);
        let recorded = finding.theirs.map(|row| self.recorded.side.blocks[row].requested);
        let key = Key {
            kind: finding.kind,
            estimated,
            recorded,
            role: block.map(|block| block.role),
            rule: block.and_then(|block| block.rule),
            op: near.and_then(|place| place.op().map(str::to_owned)),
            line: near.and_then(|place| place.line.clone()),
            site: site.clone(),
        };
        let group = groups.entry(key).or_insert_with(|| DifferenceGroup {
            kind: finding.kind,
            count: 0,
            count_at_peak: 0,
            at_peak: 0,
            bytes: Bytes::ZERO,
            estimated,
            recorded,
            role: block.map(|block| block.role),
            rule: block.and_then(|block| block.rule),
            place: None,
            after: None,
            site,
        });
        // The place shown is that of the first block that matters.
        let matters = finding.at_peak != 0;
        if group.count == 0 || (matters && group.count_at_peak == 0) {
            (group.place, group.after) = (place, after);
        }
        group.count += 1;
        group.count_at_peak += u64::from(matters);
        group.at_peak += finding.at_peak;
        group.bytes += finding.bytes;
    }
}

fn taken(life: &BlockLifetime, is_live: bool) -> Bytes {
    if is_live { life.size } else { Bytes::ZERO }
}

/// In what way two blocks that are the same differ, if they do.
fn kind(
    ours: &BlockLifetime,
    theirs: &BlockLifetime,
    kind: MatchKind,
    ours_is_live: bool,
    theirs_is_live: bool,
) -> Option<DifferenceKind> {
    match (ours_is_live, theirs_is_live) {
        (true, false) => Some(DifferenceKind::Held),
        (false, true) => Some(DifferenceKind::NotHeld),
        _ if kind == MatchKind::Resized => Some(DifferenceKind::Resized),
        (true, true) if ours.size != theirs.size => Some(DifferenceKind::Rounding),
        _ => None,
    }
}
