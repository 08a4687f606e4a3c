//! Changes to a job that lower its memory: each alone, then together until the job fits.

use super::{Figures, Recorded, Recorder, Variant};
use std::cmp::Reverse;
use xmem_types::{Bytes, MIB};

/// The least saving that counts. A segment of the allocator has two mebibytes.
const LEAST_SAVING: Bytes = Bytes(2 * MIB);

/// A factor of a step's time up to which a change costs nothing: the model of durations is no better.
const FREE: f64 = 1.01;

/// The most variants that are run in the memory of the device, until one runs there.
const MOST_CONFIRMED: usize = 4;

/// A change that may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Those that it cannot be combined with, by their places in the list. Each of a pair may name the other.
    pub excludes: Vec<usize>,
    /// What it may save, roughly: those that may save most are tried first.
    pub expected: Bytes,
}

/// A variant that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The candidates of it.
    pub measures: Vec<usize>,
    /// Its figures.
    pub recorded: Recorded,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// The job as it is.
    pub base: Figures,
    /// Each candidate alone, in the order in which they were tried; those for which there was no time are missing.
    pub single: Vec<Tried>,
    /// Combinations, in the order in which they were recorded.
    pub combined: Vec<Tried>,
    /// What costs the least time of all that fits, with room to spare where something has it, and runs in the memory of the
    /// device; none if nothing does.
    pub suggestion: Option<Tried>,
}

impl Ladder {
    /// All that was recorded and needs less than the job as it is, and that needs the least.
    #[must_use]
    pub fn smallest(&self) -> Option<&Tried> {
        let all = self.single.iter().chain(&self.combined);
        let known = all.filter_map(|tried| Some((tried.recorded.as_ref().ok()?.needs, tried)));
        known.min_by_key(|(needs, _)| *needs).map(|(_, tried)| tried)
    }
}

/// Tries the candidates, alone and together, until the job with `value` fits into `room`.
pub fn measures(
    recorder: &mut dyn Recorder,
    (value, room): (Option<u64>, Bytes),
    base: Figures,
    candidates: &[Candidate],
) -> Ladder {
    let mut search = Search { recorder, value, room, base, candidates, combined: Vec::new() };
    let single = search.each_alone();
    let mut helpful: Vec<usize> =
        single.iter().filter(|tried| search.helps(tried)).map(first).collect();
    let figures = |measure: usize| {
        let tried = single.iter().find(|tried| tried.measures == [measure]);
        tried.and_then(|tried| tried.recorded.clone().ok()).expect("helpful ones were recorded")
    };
    helpful.sort_by_key(|&measure| {
        let figures = figures(measure);
        (search.percent(&figures), figures.needs)
    });
    let one_fits = single.iter().any(is_fitting);
    if !base.fits {
        search.together(&helpful, &figures, one_fits);
    }
    let combined = std::mem::take(&mut search.combined);
    let all = single.iter().chain(&combined).filter(|tried| is_fitting(tried));
    let mut fitting: Vec<&Tried> = all.collect();
    fitting.sort_by_key(|tried| {
        let figures = tried.recorded.as_ref().ok();
        let percent = figures.map_or(u64::MAX, |figures| search.percent(figures));
        let is_full = figures.is_some_and(|figures| !figures.has_room);
        (is_full, percent, tried.measures.len())
    });
    let fitting: Vec<Tried> = fitting.into_iter().take(MOST_CONFIRMED).cloned().collect();
    let mut suggestion = None;
    for tried in fitting {
        let variant = Variant::with(value, tried.measures.clone());
        // Where there is no time to see, it is suggested as it is.
        if base.fits
            || !search.recorder.has_time()
            || search.recorder.confirm(&variant) != Some(false)
        {
            suggestion = Some(tried);
            break;
        }
    }
    Ladder { base, single, combined, suggestion }
}

fn first(tried: &Tried) -> usize {
    tried.measures[0]
}

fn is_fitting(tried: &Tried) -> bool {
    tried.recorded.as_ref().is_ok_and(|figures| figures.fits)
}

struct Search<'a> {
    recorder: &'a mut dyn Recorder,
    value: Option<u64>,
    room: Bytes,
    base: Figures,
    candidates: &'a [Candidate],
    combined: Vec<Tried>,
}

impl Search<'_> {
    fn each_alone(&mut self) -> Vec<Tried> {
        let mut single = Vec::new();
        let mut all: Vec<usize> = (0..self.candidates.len()).collect();
        all.sort_by_key(|&at| Reverse(self.candidates[at].expected));
        for some in all.chunks(self.recorder.side_by_side().max(1)) {
            if !self.recorder.has_time() {
                break;
            }
            let variants: Vec<Variant> =
                some.iter().map(|&measure| Variant::with(self.value, vec![measure])).collect();
            let recorded = self.recorder.record(&variants);
            single.extend(
                some.iter()
                    .zip(recorded)
                    .map(|(&measure, recorded)| Tried { measures: vec![measure], recorded }),
            );
        }
        single
    }

    fn helps(&self, tried: &Tried) -> bool {
        let is_less = |figures: &Figures| figures.needs + LEAST_SAVING <= self.base.needs;
        tried.recorded.as_ref().is_ok_and(is_less)
    }

    /// What a variant costs in time, in percent; nothing if it is faster, or nearly as fast.
    fn percent(&self, figures: &Figures) -> u64 {
        match figures.time_against(&self.base) {
            Some(factor) if factor > FREE => ((factor - 1.0) * 100.0).round() as u64,
            _ => 0,
        }
    }

    /// Takes helpful candidates together, the cheapest first, until the job fits; then does without those that it does not
    /// need. If one alone is enough, only what costs less than it is tried.
    fn together(&mut self, helpful: &[usize], figures: &dyn Fn(usize) -> Figures, one_fits: bool) {
        let mut chain: Vec<usize> = Vec::new();
        for &measure in helpful {
            if one_fits && figures(measure).fits {
                break;
            }
            if chain.iter().any(|&taken| self.exclude(taken, measure)) {
                continue;
            }
            chain.push(measure);
            let is_last = helpful.last() == Some(&measure);
            if chain.len() > 1 && (is_last || self.may_fit(&chain, figures)) {
                match self.record(&chain) {
                    Some(true) => return self.without_the_needless(chain),
                    Some(false) => {}
                    // What cannot be recorded with the others is left out.
                    None => drop(chain.pop()),
                }
            }
        }
        // Excluded ones may have come last.
        let is_recorded = self.combined.iter().any(|tried| tried.measures == sorted(&chain));
        if chain.len() > 1 && !one_fits && !is_recorded && self.record(&chain) == Some(true) {
            self.without_the_needless(chain);
        }
    }

    fn exclude(&self, one: usize, other: usize) -> bool {
        let names = |a: usize, b: usize| self.candidates[a].excludes.contains(&b);
        names(one, other) || names(other, one)
    }

    /// Returns whether the job fits if the savings add up: they seldom do more than that.
    fn may_fit(&self, chain: &[usize], figures: &dyn Fn(usize) -> Figures) -> bool {
        let saved = |&measure: &usize| self.base.needs.saturating_sub(figures(measure).needs);
        self.base.needs.saturating_sub(chain.iter().map(saved).sum()) <= self.room
    }

    /// Records a combination; returns whether it fits, or nothing if it cannot be recorded.
    fn record(&mut self, chain: &[usize]) -> Option<bool> {
        if !self.recorder.has_time() {
            return None;
        }
        let variant = Variant::with(self.value, chain.to_vec());
        let recorded = self.recorder.record(std::slice::from_ref(&variant)).into_iter().next()?;
        let fits = recorded.as_ref().map(|figures| figures.fits).ok();
        self.combined.push(Tried { measures: variant.measures, recorded });
        fits
    }

    /// Does without each part of a combination in turn, the most expensive first, and keeps that up where the job still fits.
    fn without_the_needless(&mut self, mut chain: Vec<usize>) {
        for measure in chain.clone().into_iter().rev() {
            let rest: Vec<usize> =
                chain.iter().copied().filter(|&other| other != measure).collect();
            if rest.len() > 1 && self.record(&rest) == Some(true) {
                chain = rest;
            }
        }
    }
}

fn sorted(chain: &[usize]) -> Vec<usize> {
    Variant::with(None, chain.to_vec()).measures
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_types::Nanos;

    /// A job of 1000 MiB; each candidate saves so many of them, and takes so much time, in percent.
    struct Job {
        candidates: Vec<(u64, u64)>,
        room: u64,
        recorded: Vec<Variant>,
        /// Those that run out of memory after their recording.
        fails_later: Vec<Vec<usize>>,
    }

    impl Job {
        fn figures(&self, measures: &[usize]) -> Figures {
            let saved: u64 = measures.iter().map(|&m| self.candidates[m].0).sum();
            let time: u64 = measures.iter().map(|&m| self.candidates[m].1).sum();
            let needs = Bytes::mib(1000 - saved);
            Figures {
                needs,
                fits: needs <= Bytes::mib(self.room),
                has_room: needs <= Bytes::mib(self.room - self.room / 80),
                step: Some(Nanos(1000 + 10 * time as i64)),
            }
        }
    }

    impl Recorder for Job {
        fn record(&mut self, variants: &[Variant]) -> Vec<Recorded> {
            self.recorded.extend_from_slice(variants);
            variants.iter().map(|variant| Ok(self.figures(&variant.measures))).collect()
        }

        fn confirm(&mut self, variant: &Variant) -> Option<bool> {
            Some(!self.fails_later.contains(&variant.measures))
        }

        fn has_time(&self) -> bool {
            self.recorded.len() < 100
        }

        fn side_by_side(&self) -> usize {
            2
        }
    }

    fn search(candidates: &[(u64, u64)], excludes: &[(usize, usize)], room: u64) -> Ladder {
        search_with(candidates, excludes, room, Vec::new())
    }

    fn search_with(
        candidates: &[(u64, u64)],
        excludes: &[(usize, usize)],
        room: u64,
        fails_later: Vec<Vec<usize>>,
    ) -> Ladder {
        let mut job =
            Job { candidates: candidates.to_vec(), room, recorded: Vec::new(), fails_later };
        let list: Vec<Candidate> = (0..candidates.len())
            .map(|at| Candidate {
                excludes: excludes.iter().filter(|(one, _)| *one == at).map(|(_, o)| *o).collect(),
                expected: Bytes::mib(candidates[at].0),
            })
            .collect();
        let base = job.figures(&[]);
        measures(&mut job, (None, Bytes::mib(room)), base, &list)
    }

    #[test]
    fn the_cheapest_that_fits_is_suggested() {
        for (room, expected) in [
            (950, Some(vec![1])),
            (880, Some(vec![0, 1])),
            (700, Some(vec![2])),
            (500, Some(vec![1, 2])),
            (450, Some(vec![0, 1, 2])),
            (400, None),
        ] {
            // 60 and 90 for nothing, 420 for 30 percent.
            let ladder = search(&[(60, 0), (90, 0), (420, 30), (0, 0)], &[], room);
            let found = ladder.suggestion.map(|tried| tried.measures);
            assert_eq!(found, expected, "{room}");
            assert_eq!(ladder.single.len(), 4);
        }
    }

    #[test]
    fn a_suggestion_ran_out_of_memory_in_its_seventh_step() {
        let found = |fails_later| {
            let ladder = search_with(&[(600, 0), (610, 5), (620, 9)], &[], 500, fails_later);
            ladder.suggestion.map(|tried| tried.measures)
        };
        assert_eq!(found(vec![]), Some(vec![0]));
        assert_eq!(found(vec![vec![0]]), Some(vec![1]));
        assert_eq!(found(vec![vec![0], vec![1], vec![2]]), None);
    }

    #[test]
    fn a_variant_that_fills_the_device_is_suggested_only_if_nothing_else_is() {
        let found = |saved| search(&[(501, 0), (saved, 20)], &[], 500).suggestion;
        assert_eq!(found(600).map(|tried| tried.measures), Some(vec![1]));
        assert_eq!(found(100).map(|tried| tried.measures), Some(vec![0]));
    }

    #[test]
    fn what_excludes_each_other_is_not_combined() {
        let ladder = search(&[(200, 0), (190, 0), (100, 5)], &[(1, 0)], 700);
        assert_eq!(ladder.suggestion.map(|tried| tried.measures), Some(vec![0, 2]));
        assert!(ladder.combined.iter().all(|tried| !tried.measures.starts_with(&[0, 1])));
    }

    #[test]
    fn a_combination_is_tried_even_if_it_cannot_be_enough() {
        let ladder = search(&[(100, 0), (100, 10)], &[], 100);
        assert_eq!(ladder.suggestion, None);
        assert_eq!(ladder.smallest().map(|tried| tried.measures.clone()), Some(vec![0, 1]));
    }
}
