//! The range of an answer whose sizes follow from assumed values.

use xmem_predict::{Bounds, Confidence, PredictedMemory, UncertaintyEffect};
use xmem_profiles::Device;
use xmem_types::Bytes;

/// The uncertainty about values that a virtual GPU does not compute.
const ASSUMED_VALUES: &str = "assumed_values";

/// Extends the range to the peaks of allocated and of reserved memory that were recorded with the lowest shares.
/// The answer itself is about the highest. The lowest peaks are those of the recorded allocator and capacity.
pub(crate) fn widen(memory: &mut PredictedMemory, lowest: (Bytes, Bytes), device: &Device) {
    let between =
        |peak: Bytes, other: Bytes| Bounds { low: peak.min(other), high: peak.max(other) };
    let allocated = between(memory.peak.allocated, lowest.0);
    let reserved = between(memory.peak.reserved, lowest.1);
    let range = &mut memory.range;
    range.uncertainties.push(UncertaintyEffect {
        name: ASSUMED_VALUES,
        blocks: None,
        allocated,
        reserved,
    });
    for (whole, part) in [(&mut range.allocated, allocated), (&mut range.reserved, reserved)] {
        whole.low = whole.low.min(part.low);
        whole.high = whole.high.max(part.high);
    }
    let (least, most) = device.available_bounds();
    if range.confidence == Confidence::Certain {
        match memory.fits {
            true if reserved.high > least => range.confidence = Confidence::MayFail,
            false if reserved.low <= most => range.confidence = Confidence::MayFit,
            _ => {}
        }
    }
}
