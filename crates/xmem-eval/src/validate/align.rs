//! The matching of recorded blocks with predicted ones.

use super::diff;
use crate::side::{BlockLifetime, BlockRow, EventKind, Side};
use std::collections::BTreeMap;
use std::ops::Range;
use xmem_types::Bytes;

/// The way in which two blocks match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchKind {
    /// Same size, at the same place of the sequence.
    Same,
    /// Same size, a little earlier or later.
    Moved,
    /// Another size, between the same neighbors.
    Resized,
    /// Same size, there before the recording began.
    Before,
}

/// A block's counterpart on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partner {
    pub(super) block: BlockRow,
    pub(super) kind: MatchKind,
}

/// The prediction along the recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Alignment {
    /// The predicted events that the recording covers.
    pub(super) window: Range<usize>,
    /// Equal events, predicted and recorded, ascending in both.
    pub(super) pairs: Vec<(usize, usize)>,
    /// For each predicted block, its counterpart.
    pub(super) of_predicted: Vec<Option<Partner>>,
    /// For each recorded block, its counterpart.
    pub(super) of_recorded: Vec<Option<Partner>>,
}

/// The highest number of equal events between two blocks of one size that count as one that moved.
const MOVED_WINDOW: usize = 64;
/// Between the same neighbors, a block of another size is the same one up to this factor.
const RESIZED: u64 = 4;
/// At how many iterations of the trace a recording that begins later is tried.
const STARTS: usize = 4;

impl Alignment {
    /// Aligns the two. A recording that found something there may begin in any iteration, of which
    /// `starts` are the first events.
    pub(super) fn of(predicted: &Side, recorded: &Side, starts: &[usize]) -> Self {
        let mut froms = vec![0];
        if recorded.blocks.iter().any(|block| block.alloc.is_none()) {
            froms.extend(starts.iter().copied().take(STARTS));
        }
        let (ours, theirs) = (tokens(predicted), tokens(recorded));
        let best = froms
            .into_iter()
            .map(|from| {
                let pairs = diff::matches(&ours[from..], &theirs);
                let covered = pairs.last().map_or(0, |&(last, _)| last + 1);
                // What is left over on both sides, as far as the recording reaches.
                let cost = (covered - pairs.len()) + (theirs.len() - pairs.len());
                (cost, from, pairs)
            })
            .min_by_key(|&(cost, from, _)| (cost, from));
        let Some((_, from, pairs)) = best else { return Self::default() };
        let pairs: Vec<_> = pairs.into_iter().map(|(at, other)| (from + at, other)).collect();
        let last = pairs.last().map_or(from, |&(at, _)| at + 1);
        let goes_on = starts.iter().any(|&start| start >= last && start > from);
        let end = if goes_on { last } else { ours.len() };
        let mut alignment = Self {
            window: from..end,
            of_predicted: vec![None; predicted.blocks.len()],
            of_recorded: vec![None; recorded.blocks.len()],
            pairs,
        };
        alignment.pair_same(predicted, recorded);
        alignment.pair_before(predicted, recorded);
        alignment.pair_moved(predicted, recorded);
        alignment.pair_resized(predicted, recorded);
        alignment
    }

    /// The number of equal events before a predicted one.
    fn before_predicted(&self, at: usize) -> usize {
        self.pairs.partition_point(|&(other, _)| other < at)
    }

    /// The number of equal events before a recorded one.
    fn before_recorded(&self, at: usize) -> usize {
        self.pairs.partition_point(|&(_, other)| other < at)
    }

    /// The predicted event that stands for a recorded one: its equal, or among those between the
    /// same neighbors the one at which most is allocated.
    pub(super) fn predicted_at(&self, at: usize, predicted: &Side, recorded: &Side) -> usize {
        let event = recorded.events[at];
        if event.kind == EventKind::Alloc
            && let Some(partner) = self.of_recorded[event.block]
            && let Some(alloc) = predicted.blocks[partner.block].alloc
            && partner.kind != MatchKind::Before
        {
            return alloc;
        }
        let gap = self.before_recorded(at + 1);
        let from = gap.checked_sub(1).map_or(self.window.start, |row| self.pairs[row].0);
        let to = self.pairs.get(gap).map_or(self.window.end, |&(next, _)| next);
        let highest = (from..to.max(from + 1)).max_by_key(|&at| predicted.allocated.get(at));
        highest.unwrap_or(from)
    }

    /// The predicted block allocated last before a recorded event, as far as the two are the same.
    pub(super) fn block_before(&self, at: usize, predicted: &Side) -> Option<BlockRow> {
        let row = self.before_recorded(at).checked_sub(1)?;
        let events = &predicted.events[..=self.pairs[row].0];
        let last = events.iter().rev().find(|event| event.kind == EventKind::Alloc)?;
        Some(last.block)
    }

    fn pair(&mut self, predicted: BlockRow, recorded: BlockRow, kind: MatchKind) {
        self.of_predicted[predicted] = Some(Partner { block: recorded, kind });
        self.of_recorded[recorded] = Some(Partner { block: predicted, kind });
    }

    fn pair_same(&mut self, predicted: &Side, recorded: &Side) {
        for row in 0..self.pairs.len() {
            let (ours, theirs) = self.pairs[row];
            if predicted.events[ours].kind == EventKind::Alloc {
                let (p, r) = (predicted.events[ours].block, recorded.events[theirs].block);
                self.pair(p, r, MatchKind::Same);
            }
        }
    }

    /// Blocks that were there when the recording began, and those of the prediction that are there
    /// at that point: where they are freed at the same place of the sequence, and the others size
    /// by size.
    fn pair_before(&mut self, predicted: &Side, recorded: &Side) {
        let from = self.window.start;
        let is_there = |block: &BlockLifetime| {
            block.alloc.is_none_or(|alloc| alloc < from)
                && block.free.is_none_or(|free| free >= from)
        };
        for row in 0..self.pairs.len() {
            let (ours, theirs) = self.pairs[row];
            let (p, r) = (predicted.events[ours].block, recorded.events[theirs].block);
            let before = recorded.blocks[r].alloc.is_none() && is_there(&predicted.blocks[p]);
            if before && self.of_predicted[p].is_none() && self.of_recorded[r].is_none() {
                self.pair(p, r, MatchKind::Before);
            }
        }
        let mut there: BTreeMap<Bytes, Vec<BlockRow>> = BTreeMap::new();
        for (row, block) in recorded.blocks.iter().enumerate().rev() {
            if block.alloc.is_none() && self.of_recorded[row].is_none() {
                there.entry(block.requested).or_default().push(row);
            }
        }
        for (row, block) in predicted.blocks.iter().enumerate() {
            if is_there(block)
                && self.of_predicted[row].is_none()
                && let Some(other) = there.get_mut(&block.requested).and_then(Vec::pop)
            {
                self.pair(row, other, MatchKind::Before);
            }
        }
    }

    /// Allocations within the window that have no counterpart yet, with how many equal events lie
    /// before each.
    fn lonely_predicted(&self, predicted: &Side) -> Vec<(usize, BlockRow)> {
        let within = |(row, block): (BlockRow, &BlockLifetime)| {
            let alloc = block.alloc.filter(|alloc| self.window.contains(alloc))?;
            self.of_predicted[row].is_none().then(|| (self.before_predicted(alloc), row))
        };
        predicted.blocks.iter().enumerate().filter_map(within).collect()
    }

    fn lonely_recorded(&self, recorded: &Side) -> Vec<(usize, BlockRow)> {
        let within = |(row, block): (BlockRow, &BlockLifetime)| {
            let alloc = block.alloc?;
            self.of_recorded[row].is_none().then(|| (self.before_recorded(alloc), row))
        };
        recorded.blocks.iter().enumerate().filter_map(within).collect()
    }

    fn pair_moved(&mut self, predicted: &Side, recorded: &Side) {
        let mut by_size: BTreeMap<Bytes, Vec<(usize, BlockRow)>> = BTreeMap::new();
        for (at, row) in self.lonely_recorded(recorded).into_iter().rev() {
            by_size.entry(recorded.blocks[row].requested).or_default().push((at, row));
        }
        for (at, row) in self.lonely_predicted(predicted) {
            let Some(same) = by_size.get_mut(&predicted.blocks[row].requested) else { continue };
            // Ascending from the end; what lies too far back will not be needed any more.
            while same.last().is_some_and(|&(other, _)| other + MOVED_WINDOW < at) {
                same.pop();
            }
            if let Some(&(other, candidate)) = same.last()
                && other <= at + MOVED_WINDOW
            {
                same.pop();
                self.pair(row, candidate, MatchKind::Moved);
            }
        }
    }

    /// Between the same neighbors, the largest with the largest.
    fn pair_resized(&mut self, predicted: &Side, recorded: &Side) {
        let mut gaps: BTreeMap<usize, (Vec<BlockRow>, Vec<BlockRow>)> = BTreeMap::new();
        for (at, row) in self.lonely_predicted(predicted) {
            gaps.entry(at).or_default().0.push(row);
        }
        for (at, row) in self.lonely_recorded(recorded) {
            gaps.entry(at).or_default().1.push(row);
        }
        for (mut ours, mut theirs) in gaps.into_values() {
            let our_size = |row: &BlockRow| predicted.blocks[*row].requested.get();
            let their_size = |row: &BlockRow| recorded.blocks[*row].requested.get();
            ours.sort_by_key(|row| std::cmp::Reverse(our_size(row)));
            theirs.sort_by_key(|row| std::cmp::Reverse(their_size(row)));
            for (p, r) in ours.into_iter().zip(theirs) {
                let (a, b) = (our_size(&p), their_size(&r));
                if a.max(b) <= a.min(b).saturating_mul(RESIZED) {
                    self.pair(p, r, MatchKind::Resized);
                }
            }
        }
    }
}

/// Events as words that can be compared: what, and how much.
fn tokens(side: &Side) -> Vec<(EventKind, Bytes)> {
    side.events.iter().map(|event| (event.kind, side.blocks[event.block].requested)).collect()
}
