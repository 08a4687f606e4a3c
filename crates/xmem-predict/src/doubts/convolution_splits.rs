//! Convolutions on GPUs of compute capability 9, whose workspaces follow from the clusters that the GPU runs at once.
//!
//! Their kernels split sums among all multiprocessors of the GPU, with a workspace for the parts. cuDNN without a GPU counts
//! 18 of them; the workspaces with all of them are worked out, with the clusters of an H100 that was measured. Other
//! GPUs of the same model may have their multiprocessors in other groups. Peak allocated hardly follows from that, peak
//! reserved may: a workspace that is a little larger may not fit where the smaller one did.

use super::{Assessment, Doubt, Subject};
use crate::range::{Bounds, Confidence};
use xmem_types::Severity;

pub(super) const DOUBT: Doubt = Doubt { name: "convolution_splits", assess };

/// The compute capability whose kernels do so.
const MAJOR: u8 = 9;

/// Bounds of peak allocated and of peak reserved on a GPU, in per mille of the predicted peaks: about those of the jobs with
/// convolutions on an H100 (docs/results/h100.md). In most of them both peaks are equal.
const ALLOCATED: [u64; 2] = [985, 1015];
const RESERVED: [u64; 2] = [940, 1100];

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let profile = subject.profile();
    let has_convolutions = match profile.virtual_gpu() {
        Some(_) => profile.symbol("aten::cudnn_convolution").is_some(),
        None => !subject.convolutions.is_empty() && subject.convolutions.release().is_some(),
    };
    if subject.device().compute_capability.major != MAJOR || !has_convolutions {
        return;
    }
    assessment.notes.report("convolution-splits", Severity::Note, None, || {
        "workspaces of convolutions follow from how many clusters the GPU runs at once, which differs between GPUs of one \
         model: on an H100, both peaks were equal in most jobs, and peak reserved up to 6 % lower or 9 % higher in others"
            .to_owned()
    });
    let around = |peak, bounds| Bounds::around(peak, bounds, 1000);
    let peak = &assessment.memory.peak;
    let bounds = (around(peak.allocated, ALLOCATED), around(peak.reserved, RESERVED));
    assessment.extend("convolution_splits", bounds, subject.device(), Confidence::Likely);
}
