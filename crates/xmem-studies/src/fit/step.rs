//! The time of a step.

use crate::offloading::operators::{Durations, outermost};
use xmem_analyzer::Profile;
use xmem_devices::Device;
use xmem_timing::TimeModel;
use xmem_types::{Bytes, Nanos};

/// The time of the last recorded iteration, by a roofline model of its operators; none without an iteration.
///
/// `pinned` is pinned memory of the host, which a step is taken to fill from the device and to read again: these copies are on
/// the stream of the operators (`save_on_cpu` of torch/autograd/graph.py).
#[must_use]
pub fn step_time(profile: &Profile, device: &Device, pinned: Bytes) -> Option<Nanos> {
    let iteration = profile.iterations.last()?;
    let model = TimeModel::of(device);
    let durations = Durations::new(profile, &model);
    let operators = outermost(profile, &(iteration.start..iteration.end));
    let time: Nanos = operators.iter().map(|operator| durations.of(operator.op)).sum();
    let copied = match pinned {
        Bytes::ZERO => Nanos::ZERO,
        bytes => model.transfer_duration(bytes) + model.transfer_duration(bytes),
    };
    (time > Nanos::ZERO).then_some(time + copied)
}
