//! The addresses of the requests of a plan.

use super::recorded::{Form, RecordedJob};
use super::{Arena, JobPlace};
use crate::planning::PlanningError;
use crate::planning::iteration::Life;
use std::collections::BTreeMap;
use std::ops::Range;
use xmem_planner::{BlockList, Limits, PlannedBlock, Planner};
use xmem_types::Bytes;

/// Gives addresses; the results are by life.
pub(super) struct Places<'a> {
    pub(super) recorded: &'a RecordedJob,
    pub(super) planner: Planner,
    pub(super) limits: &'a Limits,
}

impl Places<'_> {
    /// Plans what an iteration makes and frees.
    ///
    /// A gradient that the next iteration clears has an address of its own, if it is free again when the same request comes.
    pub(super) fn of_form(&self, form: &Form) -> Result<BTreeMap<usize, JobPlace>, PlanningError> {
        let lives = &self.recorded.lives;
        let window = &form.window;
        let time = |at: usize| {
            let life = &lives[at];
            match life.died {
                Some(died) if life.is_within(window) => Some(life.born..died),
                _ => (life.lasts() <= window.len()).then(|| window.clone()),
            }
        };
        let of_window = self.recorded.born(window.clone());
        let timed = of_window.filter(|&at| self.recorded.can_be_planned(at));
        let (ids, times): (Vec<usize>, Vec<Range<usize>>) =
            timed.filter_map(|at| Some((at, time(at)?))).unzip();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let block = |(&at, time): (&usize, &Range<usize>)| PlannedBlock {
            size: *form.sizes.range(at, lives).end(),
            start: time.start as u32,
            end: time.end as u32,
            operator: None,
        };
        let list = BlockList::new(ids.iter().zip(&times).map(block).collect())?;
        let planned = xmem_planner::plan(&list, self.planner, self.limits)?;
        let place = |&offset: &Bytes| JobPlace { arena: Arena::Iteration, offset };
        let mut places: BTreeMap<usize, JobPlace> =
            ids.into_iter().zip(planned.plan.offsets().iter().map(place)).collect();
        // What comes between the mark and the cut was made by the iteration before, and has the places of what the next one
        // makes there.
        for &(at, next) in &form.head {
            if let Some(place) = places.get(&next).copied() {
                places.insert(at, place);
            }
        }
        Ok(places)
    }

    /// The places of what requests before the first mark make and others free: those of `twins`, where nothing else is, and of
    /// what is freed before the first cut the lowest ones that are free, largest blocks first.
    pub(super) fn around(&self, twins: Vec<(usize, JobPlace)>) -> BTreeMap<usize, JobPlace> {
        let lives = &self.recorded.lives;
        let mut placed = Placed { lives, blocks: Vec::new() };
        let mut places = BTreeMap::new();
        for (at, place) in twins {
            if placed.is_free(at, place.offset) {
                placed.put(at, place.offset);
                places.insert(at, place);
            }
        }
        let cut = self.recorded.first_cut();
        let is_passing = |at: &usize| lives[*at].died.is_some_and(|died| died < cut);
        let first = self.recorded.first().into_iter().filter(is_passing);
        let mut left: Vec<usize> = first
            .filter(|at| self.recorded.can_be_planned(*at) && !places.contains_key(at))
            .collect();
        left.sort_by_key(|&at| (std::cmp::Reverse(lives[at].size), at));
        for at in left {
            let offset = placed.lowest(at);
            placed.put(at, offset);
            places.insert(at, JobPlace { arena: Arena::Iteration, offset });
        }
        places
    }

    /// The places of what requests before the first mark make and nothing frees while iterations are recorded, one behind the
    /// other.
    pub(super) fn lasting(&self) -> BTreeMap<usize, JobPlace> {
        let (mut offset, end) = (Bytes::ZERO, self.recorded.last_start());
        let mut places = BTreeMap::new();
        for at in self.recorded.first() {
            let life = &self.recorded.lives[at];
            if life.died.is_none_or(|died| died >= end) && self.recorded.can_be_planned(at) {
                places.insert(at, JobPlace { arena: Arena::Lasting, offset });
                offset += life.size;
            }
        }
        places
    }
}

/// Blocks at their offsets.
struct Placed<'a> {
    lives: &'a [Life],
    blocks: Vec<(usize, Bytes)>,
}

impl Placed<'_> {
    fn put(&mut self, at: usize, offset: Bytes) {
        self.blocks.push((at, offset));
    }

    /// The bytes of the blocks that are live together with this one, from the lowest.
    fn beside(&self, at: usize) -> Vec<Range<Bytes>> {
        let end = |life: &Life| life.died.unwrap_or(usize::MAX);
        let life = &self.lives[at];
        let is_beside = |other: &Life| other.born < end(life) && life.born < end(other);
        let beside = self.blocks.iter().filter(|(other, _)| is_beside(&self.lives[*other]));
        let mut ranges: Vec<_> =
            beside.map(|&(other, offset)| offset..offset + self.lives[other].size).collect();
        ranges.sort_by_key(|range| range.start);
        ranges
    }

    fn is_free(&self, at: usize, offset: Bytes) -> bool {
        let top = offset + self.lives[at].size;
        self.beside(at).iter().all(|range| range.end <= offset || top <= range.start)
    }

    fn lowest(&self, at: usize) -> Bytes {
        let mut offset = Bytes::ZERO;
        for range in self.beside(at) {
            if offset + self.lives[at].size <= range.start {
                break;
            }
            offset = offset.max(range.end);
        }
        offset
    }
}
