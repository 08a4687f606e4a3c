//! The iterations of a recorded job, by the requests that they make.

use super::{JobPlace, JobPlan, JobRequest, PlanMark};
use crate::block_size::PlannedMemory;
use crate::planning::interruption::Interruption;
use crate::planning::iteration::{self, Life, lives};
use crate::planning::{BlockFacts, PlanningError};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use xmem_analyzer::{JobKind, Profile, Tick};
use xmem_planner::Follower;
use xmem_predict::Prediction;
use xmem_types::{BlockId, Bytes, Nanos, Request, RequestKind, StreamId, ThreadIdx};

/// What is known about the block of a life.
pub(super) struct Known {
    pub(super) module: Option<String>,
    pub(super) operator: String,
    pub(super) is_left_out: bool,
}

/// The requests of a recorded job, from which a [`JobPlan`] is made. A life is named by its place among all of them.
pub struct RecordedJob {
    pub(super) memory: PlannedMemory,
    pub(super) mark: PlanMark,
    pub(super) lives: Vec<Life>,
    known: Vec<Known>,
    /// Of the stream with most bytes: only its blocks are planned.
    is_main: Vec<bool>,
    starts: Vec<usize>,
    windows: Vec<Range<usize>>,
    /// The end of the last iteration, and of all requests.
    ends: (usize, usize),
    /// The sizes of requests in iterations before.
    earlier: Vec<RangeInclusive<Bytes>>,
    interruptions: Vec<Interruption>,
}

/// Iterations that make the same requests.
pub(super) struct Form {
    /// The requests of one of them, from its mark, as lives.
    pub(super) requests: Vec<usize>,
    /// The requests between two cuts, at which the least memory is live.
    pub(super) window: Range<usize>,
    /// Of those between its mark and its cut: the same requests of the next iteration.
    pub(super) head: Vec<(usize, usize)>,
    /// The sizes of the requests in all of them.
    pub(super) sizes: Sizes,
}

/// The sizes that requests have in iterations that make the same ones, as with sequences of different lengths.
#[derive(Default)]
pub(super) struct Sizes(BTreeMap<usize, RangeInclusive<Bytes>>);

impl Sizes {
    pub(super) fn range(&self, at: usize, lives: &[Life]) -> RangeInclusive<Bytes> {
        let size = lives[at].size;
        self.0.get(&at).cloned().unwrap_or(size..=size)
    }
}

impl RecordedJob {
    /// The requests of a predicted job; those that an interruption names are left out of plans.
    #[must_use]
    pub fn of_prediction(prediction: &Prediction<'_>, interruptions: &[Interruption]) -> Self {
        let known = |life: &Life| {
            let facts = BlockFacts::of(life, prediction);
            Known {
                module: prediction.place(life.block).module,
                is_left_out: interruptions.iter().any(|by| by.names(&facts)),
                operator: facts.op,
            }
        };
        let starts = prediction.iteration_starts();
        let rest = prediction.schedule().rest_start(prediction.profile());
        let mark = match prediction.profile().kind {
            JobKind::Inference => PlanMark::Call,
            JobKind::Training => PlanMark::Step,
        };
        let memory = (PlannedMemory::Gpu, mark);
        let job = Self::new(prediction.requests(), starts, rest, memory, known);
        Self { interruptions: interruptions.to_vec(), ..job }
    }

    /// The requests of a job that was recorded on the CPU, for the CPU: those of the thread that made most of them, as they
    /// are. None if the recording is that of a GPU.
    #[must_use]
    pub fn of_cpu(profile: &Profile) -> Option<Self> {
        if profile.gpu.is_some() {
            return None;
        }
        let mut counts: BTreeMap<ThreadIdx, usize> = BTreeMap::new();
        profile.blocks.iter().for_each(|block| *counts.entry(block.thread).or_default() += 1);
        let thread = counts.into_iter().max_by_key(|&(_, count)| count)?.0;
        let mut events: Vec<(Tick, bool, Nanos, Request)> = Vec::new();
        for (row, block) in profile.blocks.iter().enumerate() {
            if block.thread != thread {
                continue;
            }
            let id = BlockId::new(row);
            let kind = RequestKind::Alloc { size: block.size, stream: StreamId::default() };
            events.push((block.alloc, true, block.alloc_time, Request { block: id, kind }));
            if let Some(free) = block.free {
                let time = block.free_time.unwrap_or(block.alloc_time);
                let request = Request { block: id, kind: RequestKind::Free };
                events.push((free, false, time, request));
            }
        }
        events.sort_by_key(|&(tick, is_alloc, ..)| (tick, is_alloc));
        let before = |at: Nanos| events.partition_point(|&(_, _, time, _)| time < at);
        let starts: Vec<usize> =
            profile.iterations.iter().map(|iteration| before(iteration.start)).collect();
        let rest = profile.rest.map(|rest| before(rest.time));
        let requests: Vec<Request> = events.iter().map(|&(.., request)| request).collect();
        let known = |life: &Life| {
            let block = profile.block(life.block);
            let module = profile.text(block.module);
            Known {
                module: (!module.is_empty()).then(|| module.to_owned()),
                operator: block.op.map_or_else(String::new, |op| profile.op_name(op).to_owned()),
                is_left_out: false,
            }
        };
        let memory = (PlannedMemory::Cpu, PlanMark::StepOrCall);
        Some(Self::new(&requests, &starts, rest, memory, known))
    }

    /// Iterations begin at `starts`; the last one ends at `rest`, if more of the script follows.
    pub(super) fn new(
        requests: &[Request],
        starts: &[usize],
        rest: Option<usize>,
        (memory, mark): (PlannedMemory, PlanMark),
        known: impl Fn(&Life) -> Known,
    ) -> Self {
        let lives = lives(requests, memory);
        let end = requests.len();
        Self {
            memory,
            mark,
            known: lives.iter().map(known).collect(),
            is_main: are_of_main_stream(requests, &lives),
            windows: iteration::windows(&lives, starts, end),
            ends: (rest.unwrap_or(end), end),
            earlier: Vec::new(),
            interruptions: Vec::new(),
            starts: starts.to_vec(),
            lives,
        }
    }

    /// With the sizes for which an earlier plan is good.
    pub(super) fn and_sizes_of(self, plan: &JobPlan) -> Self {
        let range = |request: &JobRequest| request.least..=request.size;
        Self { earlier: plan.iteration.iter().map(range).collect(), ..self }
    }

    /// Returns whether an iteration that another one follows comes after the first, which makes the optimizer's state and
    /// chooses algorithms. Without one, a plan is of the first.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.windows.len() > 1
    }

    /// The forms of iterations; that of the iteration with the largest load is the first.
    pub(super) fn forms(&self) -> Result<Vec<Form>, PlanningError> {
        let typical = iteration::typical_of(&self.lives, &self.windows);
        let typical = typical.ok_or(PlanningError::NoIteration)?;
        let mut forms: Vec<Form> = Vec::new();
        // The first iteration makes the optimizer's state and chooses algorithms.
        let from = usize::from(self.repeats());
        for number in [typical.index()].into_iter().chain(from..self.windows.len()) {
            let requests = self.requests_of(number);
            if !forms.iter().any(|form| self.are_same(&form.requests, &requests)) {
                forms.push(self.form(number, requests));
            }
        }
        Ok(forms)
    }

    fn form(&self, number: usize, requests: Vec<usize>) -> Form {
        let (start, cut) = (self.starts[number], self.windows[number].start);
        // The next iteration is cut at the same place behind its mark.
        let next = self.starts.get(number + 1).copied();
        let end =
            next.map_or(self.windows[number].end, |next| (next + cut - start).min(self.ends.1));
        let heads = self.born(start..cut).zip(self.born(next.unwrap_or(end)..end));
        let is_same =
            |&(one, other): &(usize, usize)| self.lives[one].size == self.lives[other].size;
        let sizes = self.sizes(&requests);
        Form { requests, window: cut..end, head: heads.filter(is_same).collect(), sizes }
    }

    fn sizes(&self, requests: &[usize]) -> Sizes {
        let mut ranges: BTreeMap<usize, RangeInclusive<Bytes>> = BTreeMap::new();
        for number in 1..self.starts.len() {
            let others = self.requests_of(number);
            if self.are_same(requests, &others) {
                for (&one, other) in requests.iter().zip(others) {
                    let (size, seen) = (self.lives[one].size, self.lives[other].size);
                    widen(ranges.entry(one).or_insert(size..=size), &(seen..=seen));
                }
            }
        }
        if self.earlier.len() == requests.len() {
            for (&at, earlier) in requests.iter().zip(&self.earlier) {
                let size = self.lives[at].size;
                widen(ranges.entry(at).or_insert(size..=size), earlier);
            }
        }
        // What varies is good for all that is smaller.
        for range in ranges.values_mut().filter(|range| range.start() < range.end()) {
            *range = self.memory.unit()..=*range.end();
        }
        Sizes(ranges)
    }

    /// Returns whether two iterations make the same requests, but for their sizes.
    fn are_same(&self, one: &[usize], other: &[usize]) -> bool {
        let is_same = |(&one, &other): (&usize, &usize)| {
            let (one, other) = (&self.known[one], &self.known[other]);
            one.operator == other.operator && one.module == other.module
        };
        one.len() == other.len() && one.iter().zip(other).all(is_same)
    }

    fn requests_of(&self, iteration: usize) -> Vec<usize> {
        let end = self.starts.get(iteration + 1).copied().unwrap_or(self.ends.0);
        self.born(self.starts[iteration]..end).collect()
    }

    /// The requests that are left out.
    pub(super) fn interruptions(&self) -> &[Interruption] {
        &self.interruptions
    }

    /// The lives that begin with requests of `range` and have bytes.
    pub(super) fn born(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let from = self.lives.partition_point(|life| life.born < range.start);
        let to = self.lives.partition_point(|life| life.born < range.end);
        (from..to.max(from)).filter(|&at| self.lives[at].requested > Bytes::ZERO)
    }

    /// The requests up to the first mark.
    pub(super) fn first(&self) -> Vec<usize> {
        self.born(0..self.first_mark()).collect()
    }

    fn first_mark(&self) -> usize {
        self.starts.get(1).copied().unwrap_or(self.ends.0)
    }

    /// Where the second iteration is cut.
    pub(super) fn first_cut(&self) -> usize {
        self.windows.get(1).map_or(self.ends.1, |window| window.start)
    }

    /// The start of the last iteration behind the first; without one, the end.
    pub(super) fn last_start(&self) -> usize {
        let last = self.starts.last().copied().filter(|&last| last > self.first_mark());
        last.unwrap_or(self.ends.1)
    }

    pub(super) fn can_be_planned(&self, at: usize) -> bool {
        self.is_main[at] && !self.known[at].is_left_out && self.lives[at].size > Bytes::ZERO
    }

    /// The places of requests of the first iteration: those that the same requests have later, if they are free again when
    /// these come. What lasts is left out of the comparison: parameters have sizes that occur in an iteration, too.
    pub(super) fn twins(
        &self,
        form: &Form,
        places: &BTreeMap<usize, JobPlace>,
    ) -> Vec<(usize, JobPlace)> {
        let placed = form.requests.iter().enumerate();
        let placed: Vec<(usize, JobPlace)> =
            placed.filter_map(|(k, at)| Some((k, *places.get(at)?))).collect();
        let range = |&(k, _): &(usize, JobPlace)| form.sizes.range(form.requests[k], &self.lives);
        let sizes: Vec<_> = placed.iter().map(range).collect();
        // When the same requests come again.
        let second = if self.starts.len() > 1 { self.requests_of(1) } else { Vec::new() };
        let again = |k: usize| second.get(k).map_or(usize::MAX, |&at| self.lives[at].born);
        let last = self.windows.get(1).map_or(self.ends.1, |window| window.end);
        let is_passing = |&at: &usize| {
            self.lives[at].died.is_some_and(|died| died < last) && self.can_be_planned(at)
        };
        let mut follower = Follower::default();
        let twin = |at: usize| {
            let (k, place) = placed[follower.next(self.lives[at].size, &sizes)?];
            (self.lives[at].died? < again(k)).then_some((at, place))
        };
        let first = self.starts.first().copied().unwrap_or_default();
        self.born(first..self.first_mark()).filter(is_passing).filter_map(twin).collect()
    }

    /// Requests as they are kept in a plan.
    pub(super) fn requests(
        &self,
        lives: &[usize],
        sizes: &Sizes,
        places: &BTreeMap<usize, JobPlace>,
    ) -> Vec<JobRequest> {
        let mut counts: BTreeMap<(Option<&str>, &str), usize> = BTreeMap::new();
        let mut request = |&at: &usize| {
            let Known { module, operator, .. } = &self.known[at];
            let count = counts.entry((module.as_deref(), operator)).or_default();
            *count += 1;
            let (least, size) = sizes.range(at, &self.lives).into_inner();
            JobRequest {
                size,
                least,
                place: places.get(&at).copied(),
                module: module.clone(),
                operator: operator.clone(),
                nth: *count - 1,
            }
        };
        lives.iter().map(&mut request).collect()
    }
}

fn widen(range: &mut RangeInclusive<Bytes>, by: &RangeInclusive<Bytes>) {
    *range = (*range.start()).min(*by.start())..=(*range.end()).max(*by.end());
}

fn are_of_main_stream(requests: &[Request], lives: &[Life]) -> Vec<bool> {
    let stream = |life: &Life| match requests[life.born].kind {
        RequestKind::Alloc { stream, .. } => stream,
        RequestKind::Free => StreamId::default(),
    };
    let mut bytes: BTreeMap<u32, Bytes> = BTreeMap::new();
    for life in lives {
        *bytes.entry(stream(life).0).or_default() += life.size;
    }
    let main = bytes.iter().max_by_key(|(_, bytes)| **bytes).map(|(stream, _)| *stream);
    lives.iter().map(|life| Some(stream(life).0) == main).collect()
}
