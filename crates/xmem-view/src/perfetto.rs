//! A trace for Perfetto (`ui.perfetto.dev`, `trace_processor`): memory as counters above the operators, modules, phases
//! and iterations of the recording.
//!
//! Left to others: how a packet is written ([`track`]), and how protocol buffers are ([`message`]).

mod message;
mod track;

use crate::Run;
use crate::clock::Clock;
use std::collections::BTreeMap;
use track::{Packets, Slice, Track};
use xmem::Bytes;
use xmem::analyzer::Role;
use xmem::types::Nanos;
use xmem::types::{OpId, ThreadIdx};

/// The run as a Perfetto trace: a protocol buffer of type `perfetto.protos.Trace`. Times are those of the recording, in
/// nanoseconds since its first event.
#[must_use]
pub fn perfetto(run: &Run<'_>) -> Vec<u8> {
    let mut packets = Packets::default();
    let device = &run.answer.device().title;
    let title = format!("{} on {device} (predicted)", run.name);
    let root = packets.group(None, &title, "Predicted by xmem: PyTorch's allocator after each allocation and free, at the times of the recording");
    let clock = Clock::new(run);
    counters(run, &clock, root, &mut packets);
    marks(run, &clock, root, &mut packets);
    spans(run, &clock, root, &mut packets);
    modules(run, &clock, root, &mut packets);
    operators(run, &clock, root, &mut packets);
    packets.into_bytes()
}

/// The figures after each request, and the allocated bytes of each role.
fn counters(run: &Run<'_>, clock: &Clock, root: Track, packets: &mut Packets) {
    let moments = || run.timeline.moments.iter().zip(0..);
    let mut figure = |name: &str, value: &dyn Fn(&xmem::predict::TimelineMoment) -> Bytes| {
        let values = moments().map(|(moment, at)| (clock.at(at), value(moment)));
        counter(packets, root, name, values);
    };
    figure("reserved", &|moment| moment.reserved);
    figure("active", &|moment| moment.active);
    figure("allocated", &|moment| moment.allocated);
    figure("requested", &|moment| moment.requested);

    let description = "Allocated bytes, by what the memory is for";
    let roles = packets.group(Some(root), "Allocated by role", description);
    let mut changes: BTreeMap<Role, Vec<(u32, i128)>> = BTreeMap::new();
    for block in &run.timeline.blocks {
        let (size, of_role) = (block.size.get().into(), changes.entry(block.role).or_default());
        of_role.push((block.start, size));
        of_role.extend(block.freed.map(|freed| (freed, -size)));
    }
    for role in Role::ALL {
        let Some(mut changes) = changes.remove(&role) else { continue };
        changes.sort_unstable();
        let mut now = 0_i128;
        let values = changes.into_iter().map(|(at, change)| {
            now += change;
            (clock.at(at), Bytes(u64::try_from(now).unwrap_or(0)))
        });
        counter(packets, roles, role.name(), values);
    }
}

/// A counter from zero on, with a value wherever it changes.
fn counter(
    packets: &mut Packets,
    group: Track,
    name: &str,
    values: impl Iterator<Item = (Nanos, Bytes)>,
) {
    let track = packets.counter(group, name);
    let mut last = None;
    for (time, value) in values {
        if last.is_none() && time > Nanos::ZERO {
            packets.value(track, Nanos::ZERO, Bytes::ZERO);
        }
        if last.replace(value) != Some(value) {
            packets.value(track, time, value);
        }
    }
}

/// The peaks, and the request that the device cannot serve.
fn marks(run: &Run<'_>, clock: &Clock, root: Track, packets: &mut Packets) {
    let (timeline, answer) = (run.timeline, run.answer);
    if timeline.moments.is_empty() {
        return;
    }
    let track = packets.slices_of(root, "Peaks");
    let mut marks = vec![
        (
            timeline.peak,
            format!("peak allocated: {}", answer.memory.peak.allocated),
            vec![
                ("allocated_bytes", answer.memory.peak.allocated),
                ("requested_bytes", answer.memory.peak.requested),
            ],
        ),
        (
            timeline.reserved_peak,
            format!(
                "peak reserved: {}",
                timeline.moments[timeline.reserved_peak as usize].reserved
            ),
            vec![("reserved_bytes", timeline.moments[timeline.reserved_peak as usize].reserved)],
        ),
    ];
    if let (Some(at), Some(oom)) = (timeline.out_of_memory, &answer.memory.out_of_memory) {
        marks.push((
            at,
            format!("out of memory: {} requested", oom.requested),
            vec![
                ("requested_bytes", oom.requested),
                ("allocated_bytes", oom.allocated),
                ("reserved_bytes", oom.reserved),
                ("free_bytes", oom.free),
                ("needed_bytes", oom.needed),
            ],
        ));
    }
    marks.sort_by_key(|mark| mark.0);
    for (at, name, facts) in marks {
        packets.instant(track, clock.at(at), &name, &facts);
    }
}

/// Iterations, and phases below them.
fn spans(run: &Run<'_>, clock: &Clock, root: Track, packets: &mut Packets) {
    let profile = run.job.profile();
    let names: Vec<String> =
        (0..profile.iterations.len()).map(|number| format!("iteration {number}")).collect();
    let iterations = profile.iterations.iter().zip(&names).map(|(iteration, name)| Slice {
        start: clock.since_begin(iteration.start),
        end: clock.since_begin(iteration.end),
        name,
        category: "iteration",
    });
    if !profile.iterations.is_empty() {
        let track = packets.slices_of(root, "Iterations");
        packets.slices(track, iterations);
    }
    let phases = profile.phases.iter().map(|span| Slice {
        start: clock.since_begin(span.start),
        end: clock.since_begin(span.end),
        name: span.phase.name(),
        category: "phase",
    });
    if !profile.phases.is_empty() {
        let track = packets.slices_of(root, "Phases");
        packets.slices(track, phases);
    }
    parts(run, clock, root, packets);
}

/// The parts of the script, where the recorder marked them.
fn parts(run: &Run<'_>, clock: &Clock, root: Track, packets: &mut Packets) {
    let parts = &run.job.profile().parts;
    let Some(last) = run.timeline.moments.last().map(|moment| moment.time) else { return };
    let ends = parts.iter().skip(1).map(|start| start.time).chain([last]);
    let slices = parts.iter().zip(ends).map(|(start, end)| Slice {
        start: clock.since_begin(start.time),
        end: clock.since_begin(end.max(start.time)),
        name: start.part.name(),
        category: "part",
    });
    if !parts.is_empty() {
        let track = packets.slices_of(root, "Parts of the script");
        packets.slices(track, slices);
    }
}

/// The calls of modules, thread by thread.
fn modules(run: &Run<'_>, clock: &Clock, root: Track, packets: &mut Packets) {
    let profile = run.job.profile();
    let calls = profile.module_calls();
    for thread in calls.chunk_by(|a, b| a.thread == b.thread) {
        let track = packets.slices_of(root, &track_name("Modules", run, thread[0].thread));
        let slices = thread.iter().map(|call| Slice {
            start: clock.since_begin(call.start),
            end: clock.since_begin(call.end),
            name: profile.text(call.name),
            category: "module",
        });
        packets.slices(track, slices);
    }
}

/// Operators and annotations, thread by thread.
fn operators(run: &Run<'_>, clock: &Clock, root: Track, packets: &mut Packets) {
    let profile = run.job.profile();
    let same_thread = |a: &OpId, b: &OpId| profile.op_thread(*a) == profile.op_thread(*b);
    for thread in profile.tree.preorder().chunk_by(same_thread) {
        let name = track_name("Operators", run, profile.op_thread(thread[0]));
        let track = packets.slices_of(root, &name);
        let slices = thread.iter().map(|&op| Slice {
            start: clock.since_begin(profile.op_start(op)),
            end: clock.since_begin(profile.tree.end(op)),
            name: profile.op_name(op),
            category: if profile.is_annotation(op) { "annotation" } else { "operator" },
        });
        packets.slices(track, slices);
    }
}

/// `Operators (thread 4711)`.
fn track_name(what: &str, run: &Run<'_>, thread: ThreadIdx) -> String {
    match run.job.profile().system_thread(thread) {
        Some(number) => format!("{what} (thread {number})"),
        None => format!("{what} (thread {} of the recording)", thread.index()),
    }
}
