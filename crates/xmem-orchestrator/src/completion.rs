//! The time at which work on streams is complete, for the frees that wait for it.
//!
//! CUDA's caching allocator records an event on each stream that used a block (`record_stream`) as the block is freed,
//! and looks at each allocation which of these events are complete (c10/cuda/CUDACachingAllocator.cpp, `insert_events`,
//! `process_events`). On a virtual GPU, work is complete at once. Here, each stream has a clock instead: work begins
//! when the host has issued it, the work before it on the stream is done and the events that the stream waits for are
//! complete, and takes as long as a [`TimeModel`] says. The host's clock is that of the recording, without the
//! recorder's pauses, and goes on when what it waits for is complete.

mod clocks;
mod held;
mod host_waits;
mod work;

use clocks::Clocks;
pub use clocks::collective_of;
use held::Held;
use host_waits::HostWaits;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use thiserror::Error;
use work::{Issued, issued};
use xmem_analyzer::recording::{ActivityKind, StreamActivity};
use xmem_analyzer::{GpuRecording, Profile, Tick};
use xmem_devices::Device;
use xmem_timing::TimeModel;
use xmem_types::{BlockId, Nanos};

/// The time at which work on the streams of a recorded job is complete.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StreamCompletion {
    /// As recorded: at once.
    #[default]
    AtOnce,
    /// After the durations of a model.
    Modeled(Box<CompletionModel>),
    /// When the host waits for it.
    HostWaits,
}

impl StreamCompletion {
    /// The name in options and in machine-readable output.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::Modeled(_) => "bandwidth",
            Self::HostWaits => "run-ahead",
        }
    }
}

/// The parameters of [`StreamCompletion::Modeled`].
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionModel {
    /// Durations on the device.
    pub device: TimeModel,
    /// The share of the recorded time that the host takes without the recorder.
    pub host: f64,
}

impl CompletionModel {
    /// The model of `device`, whose host takes 40 % of the recorded time: 5.2 of 13.7 ms were measured for an iteration
    /// of a GPT with 6 layers, kernels stubbed, without Python stacks.
    #[must_use]
    pub fn of(device: &Device) -> Self {
        Self { device: TimeModel::of(device), host: 0.4 }
    }
}

impl fmt::Display for CompletionModel {
    /// A parameter a line, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhost {:.0} % of the recorded time", self.device, self.host * 100.0)
    }
}

/// A job whose recording does not show when work is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompletionError {
    /// The log of the streams is missing.
    #[error(
        "the recording does not show what the streams of the GPU did, so that `--collectives {name}` has nothing to \
         go by: record the job again, with `xmem profile --virtual-gpu`"
    )]
    NotRecorded {
        /// The requested completion.
        name: &'static str,
    },
}

/// Checks that the recording shows what `completion` needs.
///
/// # Errors
/// If it does not.
pub fn check_completion(
    profile: &Profile,
    completion: &StreamCompletion,
) -> Result<(), CompletionError> {
    match completion {
        StreamCompletion::AtOnce => Ok(()),
        _ if activity(profile).is_some() => Ok(()),
        other => Err(CompletionError::NotRecorded { name: other.name() }),
    }
}

/// Returns whether the recording shows memory that is free earlier or later, depending on when work is complete.
#[must_use]
pub fn depends_on_completion(profile: &Profile) -> bool {
    let Some(activity) = activity(profile) else { return false };
    let awaits = profile.gpu.as_ref().is_some_and(|gpu| !gpu.awaited.is_empty());
    awaits || !held::held(profile, activity).is_empty()
}

fn activity(profile: &Profile) -> Option<&StreamActivity> {
    let recording = profile.recording()?;
    recording.allocator_history.as_ref()?.activity.as_ref()
}

/// What becomes of frees, by block: the positions before which they are complete or made, none for never.
#[derive(Default)]
pub(crate) struct Completions {
    /// Frees that wait for other streams.
    pub(crate) complete: BTreeMap<BlockId, Option<Tick>>,
    /// Frees of what a collective held longer than the program, with their times.
    pub(crate) let_go: BTreeMap<BlockId, Option<(Tick, Nanos)>>,
}

/// The frees that are complete, or made, at other times than recorded.
pub(crate) fn completions(
    profile: &Profile,
    gpu: &GpuRecording,
    completion: &StreamCompletion,
) -> Completions {
    let Some(activity) = activity(profile) else { return Completions::default() };
    match completion {
        StreamCompletion::AtOnce => Completions::default(),
        StreamCompletion::Modeled(model) => {
            let steps = steps(profile, gpu, activity, issued(profile, &model.device));
            run(Clocks::new(profile, activity, model), &steps, gpu)
        }
        StreamCompletion::HostWaits => {
            let steps = steps(profile, gpu, activity, Vec::new());
            run(HostWaits::default(), &steps, gpu)
        }
    }
}

/// The streams of a device as they work.
trait Streams {
    /// The host goes on to a time of the trace.
    fn advance(&mut self, time: Nanos);
    /// An operator issues work.
    fn operator(&mut self, thread: u32, duration: Nanos);
    /// A stream is told something.
    fn activity(&mut self, thread: u32, stream: u32, kind: ActivityKind);
    /// An iteration is over.
    fn iteration(&mut self);
    /// Returns whether a moment is complete now. One that is not known is.
    fn is_complete(&self, moment: u64) -> bool;
    /// A number for the collective that a stream was told last.
    fn collective(&mut self, stream: u32) -> u64;
    /// Returns whether PyTorch has let go of what that collective held.
    fn has_let_go(&self, collective: u64) -> bool;
}

/// What becomes of frees as the allocator and the thread that watches collectives find out.
fn run(mut streams: impl Streams, steps: &[(Nanos, Step<'_>)], gpu: &GpuRecording) -> Completions {
    let mut events = Events::default();
    let mut held = Held::default();
    for &(time, step) in steps {
        streams.advance(time);
        match step {
            Step::Operator { thread, duration } => streams.operator(thread, duration),
            Step::Activity { thread, stream, kind } => {
                if let ActivityKind::Record(moment) = kind {
                    events.of_stream.insert(moment, stream);
                }
                streams.activity(thread, stream, kind);
            }
            Step::Held { block, stream } => held.hold(block, streams.collective(stream)),
            Step::Unused(block) => held.free(block, &streams),
            Step::Iteration => streams.iteration(),
            Step::Free { block, moments } => events.free(block, moments),
            Step::Allocation(tick) => {
                events.process(tick, &streams);
                held.let_go((tick, time), &streams);
            }
        }
    }
    let complete = gpu.awaited.keys().map(|block| (*block, events.complete.get(block).copied()));
    Completions { complete: complete.collect(), let_go: held.freed() }
}

/// The events of the allocator: those of each stream in their order.
#[derive(Default)]
struct Events {
    of_stream: BTreeMap<u64, u32>,
    waiting: BTreeMap<u32, VecDeque<(u64, BlockId)>>,
    /// The number of moments for which a block waits.
    left: BTreeMap<BlockId, usize>,
    complete: BTreeMap<BlockId, Tick>,
}

impl Events {
    fn free(&mut self, block: BlockId, moments: &[u64]) {
        self.left.insert(block, moments.len());
        for moment in moments {
            let stream = self.of_stream.get(moment).copied().unwrap_or(0);
            self.waiting.entry(stream).or_default().push_back((*moment, block));
        }
    }

    /// Each stream's events are looked at in their order, up to the first that is not complete (`process_events`).
    fn process(&mut self, tick: Tick, streams: &impl Streams) {
        for queue in self.waiting.values_mut() {
            while let Some(&(moment, block)) = queue.front() {
                if !streams.is_complete(moment) {
                    break;
                }
                queue.pop_front();
                let left = self.left.entry(block).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.complete.insert(block, tick);
                }
            }
        }
    }
}

/// What the host does.
#[derive(Clone, Copy)]
enum Step<'a> {
    /// Work of an operator, issued by a thread.
    Operator {
        thread: u32,
        duration: Nanos,
    },
    Activity {
        thread: u32,
        stream: u32,
        kind: ActivityKind,
    },
    /// A collective holds a block.
    Held {
        block: BlockId,
        stream: u32,
    },
    /// The program frees a block that a collective has held.
    Unused(BlockId),
    Iteration,
    /// A block is freed that other streams use.
    Free {
        block: BlockId,
        moments: &'a [u64],
    },
    Allocation(Tick),
}

impl Step<'_> {
    /// Events are recorded within the free that waits for them, and operators go to the stream that is chosen within
    /// them.
    const fn order(&self) -> u8 {
        match self {
            Self::Allocation(_) => 0,
            Self::Activity { .. } => 1,
            Self::Operator { .. } => 2,
            Self::Held { .. } | Self::Iteration => 3,
            Self::Free { .. } | Self::Unused(_) => 4,
        }
    }
}

/// What happened, in order, at times of the trace.
fn steps<'a>(
    profile: &Profile,
    gpu: &'a GpuRecording,
    activity: &StreamActivity,
    issued: Vec<Issued>,
) -> Vec<(Nanos, Step<'a>)> {
    let base = profile.base_time();
    let mut steps = Vec::new();
    for Issued { time, thread, duration } in issued {
        steps.push((time, Step::Operator { thread, duration }));
    }
    // The recorder waits after each iteration.
    steps.extend(activity.pauses.iter().map(|pause| (pause.start - base, Step::Iteration)));
    for entry in &activity.entries {
        let step = Step::Activity { thread: entry.thread, stream: entry.stream, kind: entry.kind };
        steps.push((entry.time - base, step));
    }
    let recorded: BTreeMap<u64, Nanos> = activity
        .entries
        .iter()
        .filter_map(|entry| match entry.kind {
            ActivityKind::Record(moment) => Some((moment, entry.time - base)),
            _ => None,
        })
        .collect();
    for (time, stream, block) in held::held(profile, activity) {
        steps.push((time, Step::Held { block, stream }));
        if let Some(free) = profile.block(block).free_time {
            steps.push((free, Step::Unused(block)));
        }
    }
    for (row, block) in profile.blocks.iter().enumerate() {
        let id = BlockId::new(row);
        steps.push((block.alloc_time, Step::Allocation(block.alloc)));
        if let (Some(moments), Some(free)) = (gpu.awaited.get(&id), block.free_time) {
            let last = moments.iter().filter_map(|moment| recorded.get(moment)).max();
            let time = last.map_or(free, |last| free.max(*last));
            steps.push((time, Step::Free { block: id, moments }));
        }
    }
    steps.sort_by_key(|(time, step)| (*time, step.order()));
    steps
}

#[cfg(test)]
mod tests {
    use super::clocks::HostTime;
    use super::*;
    use xmem_analyzer::GpuSource;
    use xmem_analyzer::recording::CollectiveKind;
    use xmem_devices::find;
    use xmem_types::{Addr, Bytes};

    const BLOCK: BlockId = BlockId(0);
    const OTHER: BlockId = BlockId(1);
    const MAIN: u32 = 0;
    const SIDE: u32 = 1;

    fn told(time: i64, stream: u32, kind: ActivityKind) -> (Nanos, Step<'static>) {
        (Nanos(time), Step::Activity { thread: 7, stream, kind })
    }

    /// 240 MB among 8 ranks over NVLink: 875 µs, and 32.2 µs of latency.
    fn gather(time: i64) -> (Nanos, Step<'static>) {
        let operation = CollectiveKind::AllGather;
        let (bytes, address) = (Bytes(240_000_000), Addr(0));
        told(time, SIDE, ActivityKind::Collective { operation, bytes, ranks: 8, address })
    }

    fn record(time: i64, stream: u32, moment: u64) -> (Nanos, Step<'static>) {
        told(time, stream, ActivityKind::Record(moment))
    }

    fn free(time: i64, block: BlockId, moments: &'static [u64]) -> (Nanos, Step<'static>) {
        (Nanos(time), Step::Free { block, moments })
    }

    /// Allocations whose positions are their times in microseconds.
    fn allocations(times: &[i64]) -> Vec<(Nanos, Step<'static>)> {
        times.iter().map(|us| (Nanos(us * 1000), Step::Allocation(Tick(*us as u32)))).collect()
    }

    /// The times at which blocks can be used again: of a host at its recorded time, of one of half of it, and where
    /// work is complete when the host waits.
    fn check(steps: &[(Nanos, Step<'static>)], expected: [[Option<u32>; 2]; 3]) {
        let mut steps = steps.to_vec();
        steps.extend(allocations(&[100, 500, 950, 1_000, 1_900, 3_000, 200_000]));
        steps.sort_by_key(|(time, step)| (*time, step.order()));
        let mut gpu = GpuRecording::new(GpuSource::Trace);
        gpu.awaited = BTreeMap::from([(BLOCK, vec![]), (OTHER, vec![])]);
        let device = TimeModel::of(find("a100-40g").expect("built in"));
        let found = |completions: Completions| {
            [BLOCK, OTHER].map(|block| completions.complete[&block].map(|Tick(at)| at))
        };
        for (host, expected) in [(1.0, expected[0]), (0.5, expected[1])] {
            let model = CompletionModel { device: device.clone(), host };
            let clocks = Clocks::of(HostTime::default().share(host), None, &model);
            assert_eq!(found(run(clocks, &steps, &gpu)), expected, "host {host}");
        }
        assert_eq!(found(run(HostWaits::default(), &steps, &gpu)), expected[2], "host waits");
    }

    #[test]
    fn a_free_is_complete_when_the_work_before_its_event_is() {
        let steps = [gather(1_000), record(2_000, SIDE, 1), free(3_000, BLOCK, &[1])];
        // 908.2 µs on the host's clock.
        check(&steps, [[Some(950), None], [Some(1_900), None], [None, None]]);
    }

    #[test]
    fn a_wait_of_the_host_completes_what_was_before() {
        let steps = [
            gather(1_000),
            record(2_000, SIDE, 1),
            free(3_000, BLOCK, &[1]),
            told(4_000, SIDE, ActivityKind::HostWaitsForStream),
        ];
        check(&steps, [[Some(100), None]; 3]);
        // By way of another stream.
        let steps = [
            gather(1_000),
            record(2_000, SIDE, 1),
            free(3_000, BLOCK, &[1]),
            told(3_500, MAIN, ActivityKind::Wait(1)),
            told(4_000, MAIN, ActivityKind::HostWaitsForStream),
        ];
        check(&steps, [[Some(100), None]; 3]);
    }

    #[test]
    fn a_stream_works_in_order_and_after_what_it_waits_for() {
        // The second stream waits for the first; its own work takes no time.
        let steps = [
            gather(1_000),
            record(2_000, SIDE, 1),
            told(3_000, MAIN, ActivityKind::Wait(1)),
            record(4_000, MAIN, 2),
            free(5_000, BLOCK, &[2]),
            // On a stream that has nothing to do.
            record(6_000, 2, 3),
            free(7_000, OTHER, &[3]),
        ];
        check(&steps, [[Some(950), Some(100)], [Some(1_900), Some(100)], [None, None]]);
        // Two collectives, one after the other: 1815.4 µs.
        let steps =
            [gather(1_000), gather(1_500), record(2_000, SIDE, 1), free(3_000, BLOCK, &[1])];
        check(&steps, [[Some(1_900), None], [Some(200_000), None], [None, None]]);
    }

    #[test]
    fn operators_work_on_the_stream_of_their_thread() {
        let work = Step::Operator { thread: 7, duration: Nanos(960_000) };
        let steps = [
            told(1_000, SIDE, ActivityKind::Work),
            (Nanos(2_000), work),
            record(3_000, SIDE, 1),
            free(4_000, BLOCK, &[1]),
            record(4_000, MAIN, 2),
            free(5_000, OTHER, &[2]),
        ];
        check(&steps, [[Some(1_000), Some(100)], [Some(3_000), Some(100)], [None, None]]);
    }

    #[test]
    fn a_block_waits_for_all_streams_and_events_of_a_stream_in_their_order() {
        let steps = [
            gather(1_000),
            record(2_000, SIDE, 1),
            record(2_000, MAIN, 2),
            free(3_000, BLOCK, &[2, 1]),
            free(4_000, OTHER, &[2]),
        ];
        check(&steps, [[Some(950), Some(100)], [Some(1_900), Some(100)], [None, None]]);
    }

    #[test]
    fn iterations_end_what_the_host_does_not_wait_for() {
        let steps = [
            gather(1_000),
            record(2_000, SIDE, 1),
            free(3_000, BLOCK, &[1]),
            (Nanos(600_000), Step::Iteration),
            (Nanos(1_500_000), Step::Iteration),
        ];
        check(&steps, [[Some(950), None], [Some(1_900), None], [Some(1_900), None]]);
    }

    #[test]
    fn what_a_collective_holds_is_freed_when_pytorch_looks() {
        let hold = Step::Held { block: BLOCK, stream: SIDE };
        let steps = [gather(1_000), (Nanos(1_500), hold), (Nanos(5_000), Step::Unused(BLOCK))];
        let mut steps: Vec<_> =
            steps.into_iter().chain(allocations(&[100, 90_000, 101_000])).collect();
        steps.push((Nanos(102_000_000), Step::Unused(OTHER)));
        let gpu = GpuRecording::new(GpuSource::Trace);
        let device = TimeModel::of(find("a100-40g").expect("built in"));
        let model = CompletionModel { device, host: 1.0 };
        let clocks = Clocks::of(HostTime::default(), None, &model);
        let at = (Tick(101_000), Nanos(101_000_000));
        assert_eq!(run(clocks, &steps, &gpu).let_go, BTreeMap::from([(BLOCK, Some(at))]));
        let held = run(HostWaits::default(), &steps, &gpu).let_go;
        assert_eq!(held, BTreeMap::from([(BLOCK, None)]));
    }
}
