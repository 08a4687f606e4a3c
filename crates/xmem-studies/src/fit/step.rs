//! The time of a step.

use crate::offloading::operators::{Durations, outermost};
use std::ops::Range;
use xmem_analyzer::Profile;
use xmem_analyzer::recording::{ActivityKind, StreamActivity};
use xmem_devices::Device;
use xmem_orchestrator::collective_of;
use xmem_timing::{Group, TimeModel};
use xmem_types::{Bytes, Nanos};

/// The time of the last recorded iteration, by a roofline model of its operators; none without an iteration.
///
/// Collectives run beside the operators, as those of FSDP and DDP do, and count as far as they take longer. Copies between host
/// and device come in addition: those in the log of a virtual GPU. Without that, `pinned` is pinned memory of the host, which a
/// step is taken to fill from the device and to read again: these copies are on the stream of the operators (`save_on_cpu` of
/// torch/autograd/graph.py).
#[must_use]
pub fn step_time(profile: &Profile, device: &Device, pinned: Bytes) -> Option<Nanos> {
    let iteration = profile.iterations.last()?;
    let model = TimeModel::of(device);
    let durations = Durations::new(profile, &model);
    let span = iteration.start..iteration.end;
    let operators = outermost(profile, &span);
    let time: Nanos = operators.iter().map(|operator| durations.of(operator.op)).sum();
    let activity =
        profile.recording().and_then(|r| r.allocator_history.as_ref()?.activity.as_ref());
    let (copies, collectives) = match activity {
        Some(activity) => beside(profile, activity, &span, &model),
        None if pinned == Bytes::ZERO => (Nanos::ZERO, Nanos::ZERO),
        None => (model.transfer_duration(pinned) + model.transfer_duration(pinned), Nanos::ZERO),
    };
    (time > Nanos::ZERO).then_some(time.max(collectives) + copies)
}

/// The time of the copies between host and device in a span of time, and that of the collectives.
fn beside(
    profile: &Profile,
    activity: &StreamActivity,
    span: &Range<Nanos>,
    model: &TimeModel,
) -> (Nanos, Nanos) {
    let rank = profile.rank();
    let local = rank.map(|rank| rank.world_size.div_ceil(rank.nodes.unwrap_or(1).max(1)));
    let (mut copies, mut collectives) = (Nanos::ZERO, Nanos::ZERO);
    for entry in &activity.entries {
        if !span.contains(&(entry.time - profile.base_time())) {
            continue;
        }
        match entry.kind {
            ActivityKind::Copy(bytes) => copies = copies + model.transfer_duration(bytes),
            ActivityKind::Collective { operation, bytes, ranks, .. } => {
                let group = Group { ranks, ranks_of_a_machine: ranks.min(local.unwrap_or(ranks)) };
                let time = model.collective_duration(collective_of(operation), bytes, group);
                collectives = collectives + time;
            }
            _ => {}
        }
    }
    (copies, collectives)
}
