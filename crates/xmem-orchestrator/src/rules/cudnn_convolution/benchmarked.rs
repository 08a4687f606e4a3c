//! The convolutions that `torch.backends.cudnn.benchmark` tries, and what there is to say about them.

use crate::target::CudnnBenchmark;
use xmem_convolutions::{Basis, Plans, Trial};
use xmem_types::{Bytes, Diagnostics, Severity};

/// The convolutions that are benchmarked, as far as notes need them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Benchmarked {
    count: u64,
    /// Those whose plans cuDNN was not asked for.
    modeled: u64,
    /// The largest workspace of a trial.
    largest: Bytes,
    /// The largest workspace of a plan that may be the fastest.
    most: Bytes,
}

impl Benchmarked {
    /// Counts a convolution whose plans are tried.
    pub(super) fn count(&mut self, plans: &Plans, trial: &Trial) {
        self.count += 1;
        self.modeled += u64::from(plans.basis != Basis::Library);
        self.largest = self.largest.max(trial.largest());
        self.most = self.most.max(plans.high);
    }

    /// Notes what the answer depends on. `with_cudnn` are the convolutions that cuDNN runs.
    pub(super) fn note(&self, benchmark: CudnnBenchmark, with_cudnn: u64, notes: &mut Diagnostics) {
        let Self { count, modeled, largest, most } = *self;
        if count > 0 {
            notes.report_many("cudnn-benchmark", Severity::Note, None, count, || {
                format!(
                    "cudnn.benchmark is on: PyTorch tries all plans of each convolution, in a workspace \
                     of up to {largest}, and keeps the fastest; which one that is depends on the GPU: \
                     its workspace takes at most {most}"
                )
            });
        }
        if modeled > 0 {
            notes.report_many("cudnn-benchmark-modeled", Severity::Warning, None, modeled, || {
                "cudnn.benchmark is on and no cuDNN library answered: the workspaces of the trials are \
                 rough estimates; name the library of the GPU's machine with `--cudnn`"
                    .to_owned()
            });
        }
        if benchmark == CudnnBenchmark::Unknown && with_cudnn > 0 {
            notes.report_many(
                "cudnn-benchmark-unknown",
                Severity::Note,
                None,
                with_cudnn,
                || {
                    "the trace does not say whether the script sets cudnn.benchmark; it is taken as off: \
                     with it, PyTorch tries all plans of each convolution, which may take much more \
                     memory"
                        .to_owned()
                },
            );
        }
    }
}
