//! A job continued with iterations like the recorded ones, on a device that is nearly full.
//!
//! Where memory is short, the allocator releases cached segments and takes others, and no iteration finds the memory as the one
//! before it did: pieces that are left between blocks may add up until an allocation fails, long after the recorded iterations.

use super::sequence::Sequence;
use super::{Dimension, LengthModel, LengthsError};
use crate::prediction::Prediction;
use xmem_simulator::{Outline, RequestIndex, outline};
use xmem_types::{Bytes, Fallbacks, Workload};

/// A job that runs for so many iterations is taken to run for any number of them. A ResNet-50 on a full T4 ran out of memory in
/// the seventh, and with 0.16 GiB more in none of thirty (recorded with PyTorch's CUDA build, kernels stubbed).
pub const STEADY_ITERATIONS: usize = 24;

/// The length that all iterations have here: any will do.
const LENGTH: u64 = 1;

/// A job whose iterations are all like the recorded ones.
#[derive(Debug)]
pub struct SteadyRun<'p> {
    prediction: &'p Prediction<'p>,
    sequence: Sequence,
    fallbacks: Fallbacks,
}

impl Prediction<'_> {
    /// The job with so many iterations in all.
    ///
    /// # Errors
    /// If fewer than three iterations were recorded, or they are not alike.
    pub fn steady_run(&self, iterations: usize) -> Result<SteadyRun<'_>, LengthsError> {
        let starts = self.iteration_starts();
        if starts.len() < 3 {
            return Err(LengthsError::TooFewIterations { iterations: starts.len() });
        }
        let lengths = vec![Some(LENGTH); starts.len()];
        // The dimension has no meaning where nothing varies.
        let model = LengthModel::of(self, Dimension::Batch, lengths, Default::default())?;
        let sequence = Sequence::new(&model, &vec![LENGTH; iterations]);
        let recorded = &self.schedule.fallbacks;
        let mut fallbacks = recorded.clone();
        for &(block, slot) in &sequence.made {
            let like = model.reference[slot];
            match recorded.of(like) {
                Some(list) if recorded.is_trial(like) => fallbacks.assign_trial(block, list),
                Some(list) => fallbacks.assign(block, list),
                None => {}
            }
        }
        Ok(SteadyRun { prediction: self, sequence, fallbacks })
    }
}

impl SteadyRun<'_> {
    fn work(&self) -> Workload<'_> {
        Workload::new(&self.sequence.requests, &self.fallbacks).with_calls(&self.sequence.calls)
    }

    /// Returns whether the job runs on the device to the end of these iterations.
    #[must_use]
    pub fn fits(&self) -> bool {
        let Prediction { setup, device, .. } = self.prediction;
        outline(self.work(), &setup.choice, device, RequestIndex(0)).fits
    }

    /// The peaks of these iterations where there is enough memory.
    #[must_use]
    pub fn ample_outline(&self) -> Outline {
        let Prediction { setup, device, .. } = self.prediction;
        outline(self.work(), &setup.choice, &device.without_limit(), RequestIndex(0))
    }

    /// The smallest device memory in which it does, context included.
    #[must_use]
    pub fn min_capacity(&self) -> Bytes {
        let Prediction { setup, device, .. } = self.prediction;
        xmem_simulator::min_capacity(self.work(), &setup.choice, device) + device.taken
    }
}
