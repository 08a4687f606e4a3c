//! A job continued with iterations like the recorded ones, on a device that is nearly full.
//!
//! Where memory is short, the allocator releases cached segments and takes others, and no iteration finds the memory as the one
//! before it did: pieces that are left between blocks may add up until an allocation fails, long after the recorded iterations.

use super::sequence::Sequence;
use super::{Dimension, LengthModel, LengthsError};
use crate::prediction::Prediction;
use xmem_simulator::{DeviceConfig, Outline, RequestIndex, outline};
use xmem_types::{Bytes, Fallbacks, MIB, Workload};

/// A job that runs for so many iterations is taken to run for any number of them. A ResNet-50 on a full T4 ran out of memory in
/// the seventh, and with 0.16 GiB more in none of thirty (recorded with PyTorch's CUDA build, kernels stubbed).
pub const STEADY_ITERATIONS: usize = 24;

/// The smallest segment that the allocator takes, and the first step of a search for more memory than a device has.
const SMALLEST_SEGMENT: u64 = 2 * MIB;

/// How often that step is doubled at most.
const MAX_DOUBLINGS: u32 = 16;

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
    /// If fewer than two iterations were recorded, or two with more of the script behind them, or they are not alike.
    pub fn steady_run(&self, iterations: usize) -> Result<SteadyRun<'_>, LengthsError> {
        let starts = self.iteration_starts();
        // What the last iteration leaves is not seen to be freed, and what comes behind it is not told apart from it.
        if starts.len() < 2 || starts.len() == 2 && self.has_rest() {
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
        self.fits_in(&self.prediction.device)
    }

    /// Returns whether it does on a device that differs in its memory.
    fn fits_with(&self, capacity: Bytes) -> bool {
        let device = &self.prediction.device;
        self.fits_in(&DeviceConfig { capacity: Some(capacity), reported_total: None, ..*device })
    }

    fn fits_in(&self, device: &DeviceConfig) -> bool {
        outline(self.work(), &self.prediction.setup.choice, device, RequestIndex(0)).fits
    }

    /// The peaks of these iterations where there is enough memory.
    #[must_use]
    pub fn ample_outline(&self) -> Outline {
        let Prediction { setup, device, .. } = self.prediction;
        outline(self.work(), &setup.choice, &device.without_limit(), RequestIndex(0))
    }

    /// The least memory that a device like this one must have, context included. A job may run with less memory than the
    /// device has, and run out of it on the device, where its cache is released at other times: then it is more than the
    /// device has.
    #[must_use]
    pub fn needed_capacity(&self) -> Bytes {
        let device = &self.prediction.device;
        let least = self.min_capacity();
        let Some(capacity) = device.capacity.filter(|capacity| least <= *capacity) else {
            return least;
        };
        if self.fits() {
            return least;
        }
        (0..MAX_DOUBLINGS)
            .map(|doublings| capacity + Bytes(SMALLEST_SEGMENT << doublings))
            .find(|capacity| self.fits_with(*capacity))
            .unwrap_or_else(|| self.ample_outline().reserved + device.taken)
    }

    /// The smallest device memory from `least` on with which the job runs, context included. If `least` is enough, this takes
    /// one run.
    #[must_use]
    pub fn min_capacity_from(&self, least: Bytes) -> Bytes {
        match self.fits_with(least) {
            true => least,
            false => self.min_capacity().max(least),
        }
    }

    /// The smallest device memory in which it does, context included.
    #[must_use]
    pub fn min_capacity(&self) -> Bytes {
        let Prediction { setup, device, .. } = self.prediction;
        xmem_simulator::min_capacity(self.work(), &setup.choice, device) + device.taken
    }
}
