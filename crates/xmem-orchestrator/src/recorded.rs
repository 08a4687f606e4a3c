//! The schedule of a job that was recorded on a GPU: its own requests, as they are.
//!
//! Nothing is lowered: what CUDA's kernels request is in the recording. Only the memory that was allocated
//! before the recording began is put together, from what is known of it.

use crate::block_size::rounded;
use crate::change::ChosenWhatIf;
use crate::completion::{Completions, StreamCompletion, completions};
use crate::rules::cublas_workspace::workspace_size;
use crate::rules::cudnn_convolution::{self, recorded::RecordedPlans};
use crate::schedule::{Origin, Schedule, ScheduledBlock};
use crate::target::{Target, requested_optimizer};
use crate::uncertainty::{SizeRange, UncertainBlock, UncertainPlace, Uncertainty};
use xmem_analyzer::{Block, GpuRecording, Preexisting, Profile, RestStart, Role, Tick};
use xmem_convolutions::ConvolutionAnswers;
use xmem_devices::ComputeCapability;
use xmem_types::{
    AllocatorCall, BlockId, Bytes, Diagnostics, Nanos, PlacedCall, PrivatePoolId, Request,
    RequestKind, Severity, StreamId,
};

/// The requests of a recording.
pub(crate) fn schedule(
    profile: &Profile,
    gpu: &GpuRecording,
    target: &Target,
    convolutions: &ConvolutionAnswers,
) -> (Schedule, Diagnostics) {
    let mut notes = Diagnostics::default();
    report_ignored(profile, target, &mut notes);
    let mut draft = Requests::default();
    if gpu.may_hide_blocks() && gpu.remainder.is_none() {
        draft.without_totals(profile, &mut notes);
    }
    let rest = profile.rest.filter(|_| {
        target.what_ifs.iter().any(ChosenWhatIf::leaves_out_rest)
            || target.completion != StreamCompletion::AtOnce
    });
    if rest.is_some() {
        notes.report("rest-left-out", Severity::Warning, None, || {
            "what follows the recorded iterations is left out: the what-if is about the iterations alone".to_owned()
        });
    }
    let without_rest = rest.map(|rest| up_to(gpu, rest));
    let gpu = without_rest.as_ref().unwrap_or(gpu);
    let completions = completions(profile, gpu, &target.completion);
    report_completion(target, &completions, &mut notes);
    for (row, block) in profile.blocks.iter().enumerate() {
        let id = BlockId::new(row);
        if rest.is_some_and(|rest| block.alloc >= rest.tick) {
            break;
        }
        let mut other = None;
        if rest.is_some_and(|rest| block.free.is_some_and(|free| free >= rest.tick)) {
            let block = other.get_or_insert_with(|| block.clone());
            (block.free, block.free_time, block.completed) = (None, None, None);
        }
        if let Some(completed) = completions.complete.get(&id) {
            other.get_or_insert_with(|| block.clone()).completed =
                Some(completed.unwrap_or(Tick::NEVER));
        }
        if let Some(freed) = completions.let_go.get(&id) {
            let other = other.get_or_insert_with(|| block.clone());
            (other.free, other.free_time) = freed.unzip();
        }
        let block = other.as_ref().unwrap_or(block);
        if gpu.remainder == Some(id) {
            draft.remainder(profile, block, id, &mut notes);
        } else {
            draft.block(block, block.size, Origin::Recorded(id));
        }
    }
    let schedule = Schedule { has_rest: rest.is_none(), ..draft.finish(gpu) };
    let plans = match is_short(gpu, target) {
        true => cudnn_convolution::recorded::plans(profile, &schedule, target, convolutions),
        false => RecordedPlans::default(),
    };
    plans.note(convolutions, &mut notes);
    let uncertain = workspaces(profile, &schedule, gpu, target, &mut notes);
    let is_open = plans.guessed > 0 || plans.trials > 0;
    let unbounded = is_alike(gpu, target) == Some(false) || is_open;
    (
        Schedule {
            uncertain,
            unbounded,
            fallbacks: plans.fallbacks,
            workspaces: plans.workspaces,
            without_workspace: plans.without_workspace,
            ..schedule
        },
        notes,
    )
}

/// What a recording says up to where its rest begins.
fn up_to(gpu: &GpuRecording, rest: RestStart) -> GpuRecording {
    let mut gpu = gpu.clone();
    gpu.cache_releases.retain(|tick| *tick < rest.tick);
    gpu.pool_releases.retain(|(tick, _)| *tick < rest.tick);
    gpu
}

/// Whether the target may have less memory than the recorded job reserved, and is a GPU like the recorded one: plans of
/// another would say nothing about the recorded workspaces.
pub(crate) fn is_short(gpu: &GpuRecording, target: &Target) -> bool {
    let (least, _) = target.device.available_bounds();
    is_alike(gpu, target) == Some(true) && gpu.peak_reserved.is_none_or(|reserved| reserved > least)
}

/// An event: its position among the recorded events, its kind, the block, and the time.
type Event = (u32, EventKind, BlockId, Nanos);

/// In the order in which events of the same position go: an allocation may end the block before it at its
/// address, and the allocator looks for completed frees before it does anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EventKind {
    /// A free that waited for other streams is complete.
    Complete,
    /// The `MemPool` or the graphs of a pool are deleted.
    ReleasePool(PrivatePoolId),
    ReleaseCache,
    Free(Completion),
    Alloc,
}

/// The time at which a freed block can be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Completion {
    AtOnce,
    Later,
}

/// Where a block is allocated.
#[derive(Clone, Copy)]
struct Home {
    stream: StreamId,
    pool: Option<PrivatePoolId>,
}

#[derive(Default)]
struct Requests {
    blocks: Vec<ScheduledBlock>,
    homes: Vec<Home>,
    events: Vec<Event>,
    starts_late: bool,
}

impl Requests {
    fn block(&mut self, block: &Block, size: Bytes, origin: Origin) {
        let role = block.role;
        self.add(block, ScheduledBlock { size, role, origin, rule: None, unmodeled: None });
    }

    fn add(&mut self, place: &Block, block: ScheduledBlock) {
        let id = BlockId::new(self.blocks.len());
        self.events.push((place.alloc.0, EventKind::Alloc, id, place.alloc_time));
        if let (Some(tick), Some(time)) = (place.free, place.free_time) {
            let completion = match place.completed {
                Some(_) => Completion::Later,
                None => Completion::AtOnce,
            };
            self.events.push((tick.0, EventKind::Free(completion), id, time));
            if let Some(Tick(tick)) = place.completed {
                self.events.push((tick, EventKind::Complete, id, time));
            }
        }
        self.blocks.push(block);
        self.homes.push(Home { stream: place.stream, pool: place.pool });
    }

    /// Tensors that operators show and no event does.
    fn inferred(&mut self, profile: &Profile, place: &Block) -> Bytes {
        let known: Vec<&Preexisting> = inferred(profile).collect();
        for tensor in &known {
            for _ in 0..tensor.count {
                self.add(
                    place,
                    ScheduledBlock {
                        size: rounded(tensor.size),
                        role: tensor.role,
                        origin: Origin::Preexisting,
                        rule: None,
                        unmodeled: None,
                    },
                );
            }
        }
        total(known.into_iter())
    }

    /// The block that stands for all that was allocated before and is never freed: the tensors that
    /// operators show, and one block for the rest.
    fn remainder(
        &mut self,
        profile: &Profile,
        block: &Block,
        id: BlockId,
        notes: &mut Diagnostics,
    ) {
        let fits = total(inferred(profile)) <= block.size;
        let known = if fits { self.inferred(profile, block) } else { Bytes::ZERO };
        let rest = block.size - known;
        if rest > Bytes::ZERO {
            self.block(block, rest, Origin::Recorded(id));
        }
        notes.report("unknown-origin", Severity::Warning, None, || {
            let known = match known {
                Bytes::ZERO => String::new(),
                known => format!(
                    "{known} are taken for the parameters, buffers and optimizer state that operators \
                     use, and "
                ),
            };
            format!(
                "{} were allocated before the recording began and are never freed: {known}{rest} are \
                 one block of unknown origin; reserved memory depends on its parts",
                block.size,
            )
        });
    }

    /// Without totals, the tensors that operators show are all that is known of what was there before.
    fn without_totals(&mut self, profile: &Profile, notes: &mut Diagnostics) {
        let Some(first) = profile.blocks.first() else { return };
        let mut place = first.clone();
        (place.alloc, place.free, place.free_time) = (Tick(0), None, None);
        let known = self.inferred(profile, &place);
        if known > Bytes::ZERO {
            self.starts_late = true;
            notes.report("made-before-trace", Severity::Warning, None, || {
                format!(
                    "the recording has no totals of memory: {known} of parameters, buffers and optimizer \
                     state, which operators use, are taken to have been there before it began"
                )
            });
        }
    }

    fn finish(self, gpu: &GpuRecording) -> Schedule {
        let Self { blocks, homes, mut events, starts_late } = self;
        let nothing = (BlockId(0), Nanos::ZERO);
        for &Tick(tick) in &gpu.cache_releases {
            events.push((tick, EventKind::ReleaseCache, nothing.0, nothing.1));
        }
        for &(Tick(tick), pool) in &gpu.pool_releases {
            events.push((tick, EventKind::ReleasePool(pool), nothing.0, nothing.1));
        }
        events.sort_unstable();
        let mut schedule = Schedule { blocks, starts_late, ..Schedule::default() };
        let mut scope = None;
        for (_, kind, block, time) in events {
            let pool = match kind {
                EventKind::Alloc => homes[block.index()].pool,
                _ => None,
            };
            if pool != scope {
                schedule.calls_from_pool(scope, pool);
                scope = pool;
            }
            let request = match kind {
                EventKind::Complete => {
                    schedule.call(AllocatorCall::Complete(block));
                    continue;
                }
                EventKind::ReleasePool(pool) => {
                    schedule.call(AllocatorCall::ReleasePool(pool));
                    continue;
                }
                EventKind::ReleaseCache => {
                    schedule.call(AllocatorCall::ReleaseCache);
                    continue;
                }
                EventKind::Free(completion) => {
                    if completion == Completion::Later {
                        schedule.call(AllocatorCall::AwaitStreams(block));
                    }
                    RequestKind::Free
                }
                EventKind::Alloc => RequestKind::Alloc {
                    size: schedule.blocks[block.index()].size,
                    stream: homes[block.index()].stream,
                },
            };
            schedule.requests.push(Request { block, kind: request });
            schedule.times.push(time);
        }
        schedule
    }
}

impl Schedule {
    /// A call before the next request.
    fn call(&mut self, call: AllocatorCall) {
        self.calls.push(PlacedCall { before: self.requests.len(), call });
    }

    /// The next allocations come from another pool than the last ones.
    fn calls_from_pool(&mut self, last: Option<PrivatePoolId>, next: Option<PrivatePoolId>) {
        if let Some(pool) = last {
            self.call(AllocatorCall::LeavePool(pool));
        }
        if let Some(pool) = next {
            self.call(AllocatorCall::EnterPool(pool));
        }
    }
}

/// The reason why frees are not complete as recorded, with the parameters of the model.
fn report_completion(target: &Target, completions: &Completions, notes: &mut Diagnostics) {
    let how = match &target.completion {
        StreamCompletion::AtOnce => return,
        StreamCompletion::HostWaits => "when the host waits for it".to_owned(),
        StreamCompletion::Modeled(model) => {
            let parameters = model.to_string().replace('\n', "; ");
            format!("after modeled durations, not measured ones ({parameters})")
        }
    };
    let (awaited, held) = (completions.complete.len(), completions.let_go.len());
    notes.report("stream-completion", Severity::Note, None, || {
        format!(
            "work on the streams of the GPU is complete {how}: on it depends when {awaited} blocks that several \
             streams used can be used again, and {held} that collectives held are freed"
        )
    });
}

/// What-ifs that change the lowering of a CPU's recording. The implementation of the optimizer that the script itself
/// requested is none.
fn report_ignored(profile: &Profile, target: &Target, notes: &mut Diagnostics) {
    let usual = Target::new(target.device.clone());
    let requested = profile.recording().and_then(requested_optimizer);
    let ignored = [
        (
            "the implementation of the optimizer",
            target.optimizer.is_some() && target.optimizer != requested,
        ),
        ("the place of zero_grad", target.zero_grad.is_some()),
        ("set_to_none", target.set_to_none != usual.set_to_none),
        ("rules that are switched off", !target.disabled.is_empty()),
    ];
    let names: Vec<&str> = ignored.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
    if !names.is_empty() {
        notes.report("what-if-ignored", Severity::Warning, None, || {
            format!(
                "a recording of a GPU is replayed as it is, so that these what-ifs have no effect: {}; \
                 record the job on the CPU for them",
                names.join(", ")
            )
        });
    }
}

/// Whether the target has the compute capability of the recorded GPU; none if that is not known. A capacity alone is that
/// of the recorded GPU.
fn is_alike(gpu: &GpuRecording, target: &Target) -> Option<bool> {
    let (major, minor) = gpu.properties.compute_capability?;
    let is_same = ComputeCapability { major, minor } == target.device.compute_capability;
    Some(is_same || target.device.is_custom())
}

/// Compares the target with the recorded GPU. Blocks that are known to be workspaces of cuBLAS have the
/// target's size as their other bound.
fn workspaces(
    profile: &Profile,
    schedule: &Schedule,
    gpu: &GpuRecording,
    target: &Target,
    notes: &mut Diagnostics,
) -> Vec<UncertainBlock> {
    if target.device.is_custom() {
        return Vec::new();
    }
    let recorded = gpu.properties.compute_capability;
    let wanted = target.device.compute_capability;
    let Some((major, minor)) = recorded else {
        notes.report("recorded-gpu-unknown", Severity::Note, None, || {
            "the file does not say which GPU it was recorded on: workspaces of cuBLAS and cuDNN, and the \
             kernels of attention, are those of that GPU"
                .into()
        });
        return Vec::new();
    };
    if is_alike(gpu, target) != Some(false) {
        return Vec::new();
    }
    notes.report("recorded-on-another-gpu", Severity::Warning, None, || {
        let name = gpu.properties.name.as_deref().unwrap_or("a GPU");
        format!(
            "the job was recorded on {name} (compute capability {major}.{minor}), and the estimate is for \
             {wanted}: workspaces of cuBLAS and cuDNN, and the kernels of attention, are those of the \
             recorded GPU and may differ, and no convolution takes a smaller workspace where memory is short; \
             `xmem profile --virtual-gpu {} -- …` records it for this one",
            target.device.name
        )
    });
    let other = target.cublas_workspace.unwrap_or_else(|| workspace_size(wanted, target.torch));
    // Those of cuBLAS are kept; those of cuDNN end with their calls.
    let is_of_cublas = |block: &ScheduledBlock| {
        let Origin::Recorded(id) = block.origin else { return false };
        let recorded = profile.block(id);
        let ends = recorded.op.zip(recorded.free_time);
        block.role == Role::Workspace && ends.is_none_or(|(op, free)| free > profile.tree.end(op))
    };
    let blocks = schedule.blocks.iter().enumerate().filter(|(_, block)| is_of_cublas(block));
    blocks
        .map(|(row, block)| UncertainBlock {
            range: SizeRange::new(
                block.size.min(other),
                block.size.max(other),
                Uncertainty::Library,
            ),
            place: UncertainPlace::Block(BlockId::new(row)),
        })
        .collect()
}

/// Tensors of a recording that began late. Gradients show by their frees.
fn inferred(profile: &Profile) -> impl Iterator<Item = &Preexisting> {
    profile.preexisting.iter().filter(|tensor| tensor.role != Role::Gradient)
}

fn total<'a>(tensors: impl Iterator<Item = &'a Preexisting>) -> Bytes {
    let sizes = tensors.map(|t| rounded(t.size).get().saturating_mul(u64::from(t.count)));
    Bytes(sizes.fold(0, u64::saturating_add))
}
