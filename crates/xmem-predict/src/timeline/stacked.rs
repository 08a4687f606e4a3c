//! Allocated memory over time by a property of blocks, in few points.

use super::{BlockKey, Timeline};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;
use xmem_types::Bytes;

/// Allocated memory over time, by group. Each point is the moment of the highest allocated bytes in its part of the
/// run, so that no peak is lost; the groups of a point add up to what is allocated then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacked {
    /// The moments.
    pub moments: Vec<u32>,
    /// The groups: in the order of roles, or with the largest peak first.
    pub groups: Vec<StackedGroup>,
}

/// A group of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackedGroup {
    /// Its name; empty where the property is not known, `other` for the small groups together.
    pub name: String,
    /// Bytes at each point.
    pub bytes: Vec<Bytes>,
}

impl StackedGroup {
    /// The name of the small groups together.
    pub const OTHER: &'static str = "other";
}

impl Timeline {
    /// Allocated memory within [`Timeline::within`] in at most `points` points, by `key`, in at most `groups` groups.
    /// Names of several levels (modules, stacks) are joined by ` > `.
    #[must_use]
    pub fn stacked(&self, key: BlockKey, points: usize, groups: usize) -> Stacked {
        self.stacked_between(&self.within, key, points, groups)
    }

    /// The same for other moments.
    ///
    /// # Panics
    /// If the timeline has fewer moments.
    #[must_use]
    pub fn stacked_between(
        &self,
        within: &Range<u32>,
        key: BlockKey,
        points: usize,
        groups: usize,
    ) -> Stacked {
        let moments = self.highest_moments(within, points);
        let mut group_of: FxHashMap<u64, usize> = FxHashMap::default();
        let mut names = Vec::new();
        // What changes at each moment: the group, and the bytes that come or go.
        let mut changes: Vec<(u32, usize, i128)> = Vec::with_capacity(2 * self.blocks.len());
        for block in &self.blocks {
            let group = *group_of.entry(Self::group_by(block, key)).or_insert_with(|| {
                names.push(self.names(block, key).join(" > "));
                names.len() - 1
            });
            let size = i128::from(block.size.get());
            changes.push((block.start, group, size));
            changes.extend(block.freed.map(|freed| (freed, group, -size)));
        }
        changes.sort_unstable_by_key(|change| change.0);
        let mut changes = changes.into_iter().peekable();
        let mut now = vec![0_i128; names.len()];
        let mut all: Vec<StackedGroup> =
            names.into_iter().map(|name| StackedGroup { name, bytes: Vec::new() }).collect();
        for &moment in &moments {
            while let Some((_, group, bytes)) = changes.next_if(|change| change.0 <= moment) {
                now[group] += bytes;
            }
            for (group, &bytes) in all.iter_mut().zip(&now) {
                group.bytes.push(Bytes(u64::try_from(bytes).unwrap_or(0)));
            }
        }
        all.retain(|group| group.bytes.iter().any(|bytes| bytes.get() > 0));
        match key {
            BlockKey::Role => {
                let place = |group: &StackedGroup| {
                    xmem_analyzer::Role::ALL.iter().position(|role| role.name() == group.name)
                };
                all.sort_by_key(place);
            }
            _ => all.sort_by_key(|group| Reverse(group.bytes.iter().max().copied())),
        }
        Stacked { moments, groups: merged(all, groups.max(1)) }
    }

    /// The moment of the highest allocated bytes in each of at most `points` parts of some moments.
    fn highest_moments(&self, within: &Range<u32>, points: usize) -> Vec<u32> {
        let (from, count) = (within.start as usize, within.len());
        let points = points.clamp(1, count.max(1));
        let edge = |point: usize| from + point * count / points;
        let highest = |part: Range<usize>| {
            part.reduce(|best, at| {
                if self.moments[at].allocated > self.moments[best].allocated { at } else { best }
            })
        };
        let parts = (0..points).filter_map(|point| highest(edge(point)..edge(point + 1)));
        parts.map(|at| at as u32).collect()
    }
}

/// The groups with the largest peaks, in their order, and the others as one.
fn merged(mut all: Vec<StackedGroup>, most: usize) -> Vec<StackedGroup> {
    if all.len() <= most {
        return all;
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&row| Reverse(all[row].bytes.iter().max().copied()));
    let mut rest: Vec<usize> = order.split_off(most - 1);
    rest.sort_unstable();
    let mut other = StackedGroup { name: StackedGroup::OTHER.to_owned(), bytes: Vec::new() };
    for &row in rest.iter().rev() {
        let group = all.remove(row);
        other.bytes.resize(group.bytes.len(), Bytes::ZERO);
        for (sum, bytes) in other.bytes.iter_mut().zip(group.bytes) {
            *sum += bytes;
        }
    }
    all.push(other);
    all
}
