//! A job that goes on with iterations like the recorded ones, on a device that is nearly full.
//!
//! Where memory is short, the allocator releases cached segments and takes others, and no iteration finds the memory as the one
//! before it did: pieces that are left between blocks may add up until an allocation fails, long after the recorded iterations.

use super::sequence::Sequence;
use super::{Dimension, LengthModel, LengthsError, check_matches};
use crate::prediction::Prediction;
use xmem_orchestrator::RecordedIterations;
use xmem_simulator::{RequestIndex, outline};
use xmem_types::{BlockId, Bytes, Fallbacks, Workload};

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
        let recorded = RecordedIterations::new(self.locator.profile, &self.schedule, starts);
        let reference = recorded.fullest();
        check_matches(&recorded.counterparts(reference + 1, reference))?;
        let lengths = vec![Some(LENGTH); recorded.count()];
        // The dimension has no meaning where nothing varies.
        let model = LengthModel::of(self, Dimension::Batch, lengths, Default::default())?;
        let sequence = Sequence::new(&model, &vec![LENGTH; iterations]);
        let mut fallbacks = self.schedule.fallbacks.clone();
        for &(block, slot) in &sequence.made {
            let like: BlockId = recorded.blocks[reference][slot];
            if let Some(list) = self.schedule.fallbacks.of(like) {
                match self.schedule.fallbacks.is_trial(like) {
                    true => fallbacks.assign_trial(block, list),
                    false => fallbacks.assign(block, list),
                }
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

    /// The smallest device memory in which it does, context included.
    #[must_use]
    pub fn min_capacity(&self) -> Bytes {
        let Prediction { setup, device, .. } = self.prediction;
        xmem_simulator::min_capacity(self.work(), &setup.choice, device) + device.taken
    }
}
