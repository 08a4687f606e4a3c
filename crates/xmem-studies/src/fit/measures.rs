//! Changes to a job that lower its memory: each alone, then together until the job fits.

use super::{Figures, Recorded, Recorder, Variant};
use std::cmp::Reverse;
use xmem_types::{Bytes, MIB};

/// The least saving that counts. A segment of the allocator has two mebibytes.
const LEAST_SAVING: Bytes = Bytes(2 * MIB);

/// A factor of a step's time up to which a change costs nothing: the model of durations is no better.
const FREE: f64 = 1.01;

/// The most variants that are run in the memory of the device, until one runs there.
const MAX_CONFIRMED: usize = 4;

/// The most combinations that are recorded until one fits.
const MAX_COMBINED: usize = 8;

/// The most candidates that are combined, the cheapest ones: there are at most 2¹² combinations of them.
const MAX_HELPFUL: usize = 12;

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
    let helpful = single.iter().filter(|tried| search.helps(tried));
    let figures = |tried: &Tried| Some((first(tried), *tried.recorded.as_ref().ok()?));
    let mut helpful: Vec<(usize, Figures)> = helpful.filter_map(figures).collect();
    helpful.sort_by_key(|(_, figures)| (search.percent(figures), figures.needs));
    if !base.fits {
        search.together(&helpful);
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
    let fitting: Vec<Tried> = fitting.into_iter().take(MAX_CONFIRMED).cloned().collect();
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

    /// Takes helpful candidates together until the job fits: of all combinations with which it may fit, always those that should
    /// cost the least time, as many as are recorded side by side. If one alone is enough, only what costs less than it is tried.
    /// If none can be enough, the one that may need the least is recorded.
    fn together(&mut self, helpful: &[(usize, Figures)]) {
        let helpful = &helpful[..helpful.len().min(MAX_HELPFUL)];
        let alone = helpful.iter().filter(|(_, figures)| figures.fits);
        let mut limit = alone.map(|(_, figures)| self.percent(figures)).min();
        let mut left = self.combinations(helpful);
        let mut count = 0;
        loop {
            left.retain(|combination| limit.is_none_or(|limit| combination.percent < limit));
            let may_fit = left.iter().filter(|combination| combination.needs <= self.room);
            // The last one is the one that saves the most, and what it does not need is taken from it.
            let most = MAX_COMBINED.saturating_sub(count + 1);
            let next = match most {
                0 => may_fit.min_by_key(|c| (c.needs, Reverse(c.saved))).into_iter().collect(),
                _ => cheapest(may_fit, self.recorder.side_by_side().clamp(1, most)),
            };
            let next: Vec<Combination> = next.into_iter().cloned().collect();
            if next.is_empty() {
                break;
            }
            count += next.len();
            let Some(recorded) =
                self.record(next.iter().map(|next| next.measures.clone()).collect())
            else {
                return;
            };
            for (next, recorded) in next.iter().zip(recorded) {
                match recorded {
                    Ok(figures) if figures.fits && most == 0 => {
                        return self.without_the_needless(next.measures.clone());
                    }
                    // What costs more need not be tried.
                    Ok(figures) if figures.fits => {
                        limit = Some(limit.map_or(next.percent, |limit| limit.min(next.percent)));
                    }
                    Ok(figures) => next.bounds(figures.needs, &mut left),
                    // What cannot be recorded cannot be with more either.
                    Err(_) => left.retain(|other| !is_part(&next.measures, &other.measures)),
                }
            }
            if most == 0 {
                break;
            }
        }
        if limit.is_none()
            && self.combined.is_empty()
            && let Some(least) = left.iter().min_by_key(|c| (c.needs, c.measures.len())).cloned()
        {
            self.record(vec![least.measures]);
        }
    }

    /// Does without each part of a combination that fits in turn, the most expensive first, where the job fits without it.
    fn without_the_needless(&mut self, mut measures: Vec<usize>) {
        for measure in measures.clone().into_iter().rev() {
            let rest: Vec<usize> =
                measures.iter().copied().filter(|&other| other != measure).collect();
            let known = self
                .combined
                .iter()
                .any(|tried| is_part(&rest, &tried.measures) && !is_fitting(tried));
            if rest.len() < 2 || known {
                continue;
            }
            let recorded = self.record(vec![rest.clone()]).and_then(|mut all| all.pop());
            if recorded.is_some_and(|recorded| recorded.is_ok_and(|figures| figures.fits)) {
                measures = rest;
            }
        }
    }

    /// All combinations of two and more candidates.
    fn combinations(&self, helpful: &[(usize, Figures)]) -> Vec<Combination> {
        let mut all: Vec<Combination> = vec![Combination {
            measures: Vec::new(),
            percent: 0,
            needs: self.base.needs,
            saved: Bytes::ZERO,
        }];
        for &(measure, figures) in helpful {
            let saved = self.base.needs.saturating_sub(figures.needs);
            let fit = |one: &&Combination| {
                one.measures.iter().all(|&taken| !self.exclude(taken, measure))
            };
            let with = |one: &Combination| {
                let saved = one.saved + saved;
                Combination {
                    measures: one.measures.iter().copied().chain([measure]).collect(),
                    percent: one.percent + self.percent(&figures),
                    saved,
                    needs: self.base.needs.saturating_sub(saved),
                }
            };
            let more: Vec<Combination> = all.iter().filter(fit).map(with).collect();
            all.extend(more);
        }
        all.retain(|combination| combination.measures.len() > 1);
        all
    }

    fn exclude(&self, one: usize, other: usize) -> bool {
        let names = |a: usize, b: usize| self.candidates[a].excludes.contains(&b);
        names(one, other) || names(other, one)
    }

    /// Records combinations side by side; returns nothing if the time is up.
    fn record(&mut self, combinations: Vec<Vec<usize>>) -> Option<Vec<Recorded>> {
        if !self.recorder.has_time() {
            return None;
        }
        let variants = combinations.into_iter().map(|measures| Variant::with(self.value, measures));
        let variants: Vec<Variant> = variants.collect();
        let recorded = self.recorder.record(&variants);
        let tried = variants.into_iter().zip(&recorded).map(|(variant, recorded)| Tried {
            measures: variant.measures,
            recorded: recorded.clone(),
        });
        self.combined.extend(tried);
        Some(recorded)
    }
}

/// The combinations that should cost the least time, at most `count`: the cheapest, and others that neither are part of one before
/// nor have one as a part, as its recording says something about those.
fn cheapest<'c>(
    combinations: impl Iterator<Item = &'c Combination>,
    count: usize,
) -> Vec<&'c Combination> {
    let mut all: Vec<&Combination> = combinations.collect();
    all.sort_by_key(|c| (c.percent, c.measures.len(), c.needs));
    let mut taken: Vec<&Combination> = Vec::new();
    for one in all {
        let is_other = |other: &&Combination| {
            !is_part(&one.measures, &other.measures) && !is_part(&other.measures, &one.measures)
        };
        if taken.len() < count && taken.iter().all(is_other) {
            taken.push(one);
        }
    }
    taken
}

/// Candidates that are taken together.
#[derive(Clone, Debug)]
struct Combination {
    measures: Vec<usize>,
    /// What it should cost in time: the sum of what each costs.
    percent: u64,
    /// What each saves alone, in sum.
    saved: Bytes,
    /// The least that it may need: savings seldom do more than add up, and do less where a part of it was recorded that does.
    needs: Bytes,
}

impl Combination {
    /// Notes what follows for others from the recording of this one, which does not fit.
    fn bounds(&self, needs: Bytes, others: &mut Vec<Self>) {
        others.retain(|other| !is_part(&other.measures, &self.measures));
        for other in others.iter_mut().filter(|other| is_part(&self.measures, &other.measures)) {
            // What it has beside this one saves at most what that saves alone.
            let saved = other.saved.saturating_sub(self.saved);
            other.needs = other.needs.max(needs.saturating_sub(saved));
        }
    }
}

fn is_part(one: &[usize], of: &[usize]) -> bool {
    one.iter().all(|measure| of.contains(measure))
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
        side_by_side: usize,
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
            self.side_by_side
        }
    }

    fn search(candidates: &[(u64, u64)], excludes: &[(usize, usize)], room: u64) -> Ladder {
        search_with(candidates, excludes, room, Vec::new(), 2)
    }

    fn search_with(
        candidates: &[(u64, u64)],
        excludes: &[(usize, usize)],
        room: u64,
        fails_later: Vec<Vec<usize>>,
        side_by_side: usize,
    ) -> Ladder {
        let candidates = candidates.to_vec();
        let mut job = Job { candidates, room, recorded: Vec::new(), fails_later, side_by_side };
        let list: Vec<Candidate> = (0..job.candidates.len())
            .map(|at| Candidate {
                excludes: excludes.iter().filter(|(one, _)| *one == at).map(|(_, o)| *o).collect(),
                expected: Bytes::mib(job.candidates[at].0),
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
            let ladder = search_with(&[(600, 0), (610, 5), (620, 9)], &[], 500, fails_later, 1);
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

    /// What a GPT-2 of six layers saved on a T4: half of its blocks checkpointed came first, as it costs less, and hid that all
    /// of them fit with little more, so that activations went to the host.
    #[test]
    fn checkpointing_of_every_second_block_hid_that_of_all_blocks() {
        let candidates = [(10, 4), (120, 0), (140, 4), (190, 5), (200, 9), (480, 131), (490, 17)];
        let ladder = search(&candidates, &[(4, 6)], 460);
        assert_eq!(ladder.suggestion.map(|tried| tried.measures), Some(vec![1, 6]));
        let ladder = search(&candidates, &[(4, 6)], 380);
        assert_eq!(ladder.suggestion.map(|tried| tried.measures), Some(vec![1, 2, 3, 4]));
    }

    /// Candidates of which all but the last two save the same memory: many pairs seem to be enough, and none is.
    #[test]
    fn the_strongest_combination_is_tried_before_the_search_ends() {
        struct Overlapping(Job);
        impl Recorder for Overlapping {
            fn record(&mut self, variants: &[Variant]) -> Vec<Recorded> {
                let figures = |variant: &Variant| {
                    let (same, other) =
                        variant.measures.split_at(variant.measures.partition_point(|&m| m < 6));
                    let saved = 300 * u64::from(!same.is_empty()) + 150 * other.len() as u64;
                    let needs = Bytes::mib(1000 - saved);
                    let step = self.0.figures(&variant.measures).step;
                    Ok(Figures { needs, fits: needs <= Bytes::mib(450), has_room: true, step })
                };
                variants.iter().map(figures).collect()
            }

            fn confirm(&mut self, _: &Variant) -> Option<bool> {
                Some(true)
            }

            fn has_time(&self) -> bool {
                true
            }

            fn side_by_side(&self) -> usize {
                1
            }
        }
        let candidates =
            vec![(50, 1), (50, 2), (50, 3), (50, 4), (50, 5), (50, 6), (50, 30), (50, 40)];
        let job = Job {
            candidates,
            room: 450,
            recorded: Vec::new(),
            fails_later: Vec::new(),
            side_by_side: 1,
        };
        let base = Figures { fits: false, ..job.figures(&[]) };
        let list = vec![Candidate { excludes: Vec::new(), expected: Bytes::mib(1) }; 8];
        let ladder = measures(&mut Overlapping(job), (None, Bytes::mib(450)), base, &list);
        let suggestion = ladder.suggestion.expect("three of them are enough").measures;
        assert!(suggestion.ends_with(&[6, 7]) && suggestion.len() == 3, "{suggestion:?}");
        assert!(ladder.combined.len() <= MAX_COMBINED + 8, "{:?}", ladder.combined);
    }

    #[test]
    fn a_combination_was_recorded_twice() {
        for room in (100..1000).step_by(20) {
            let candidates = [(60, 0), (90, 0), (120, 8), (420, 30), (200, 12)];
            let ladder = search(&candidates, &[(2, 3)], room);
            let mut all: Vec<&[usize]> =
                ladder.combined.iter().map(|tried| tried.measures.as_slice()).collect();
            all.sort_unstable();
            assert!(all.windows(2).all(|two| two[0] != two[1]), "{room}: {all:?}");
        }
    }

    #[test]
    fn recordings_side_by_side_find_what_costs_as_little() {
        let candidates = [(120, 0), (140, 4), (190, 5), (200, 9), (250, 17)];
        for room in (109..800).step_by(10) {
            let found = |side_by_side| {
                let ladder = search_with(&candidates, &[(2, 4)], room, Vec::new(), side_by_side);
                let figures = ladder.suggestion?.recorded.expect("it fits");
                figures.step
            };
            assert_eq!(found(3), found(1), "{room}");
            assert_eq!(found(2), found(1), "{room}");
        }
    }

    #[test]
    fn a_combination_is_tried_even_if_it_cannot_be_enough() {
        let ladder = search(&[(100, 0), (100, 10)], &[], 100);
        assert_eq!(ladder.suggestion, None);
        assert_eq!(ladder.smallest().map(|tried| tried.measures.clone()), Some(vec![0, 1]));
    }
}
