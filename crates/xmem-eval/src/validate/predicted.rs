//! The estimate's side: its requests, served by its allocator.

use crate::side::Side;
use xmem::predict::Prediction;
use xmem_simulator::{
    Device, DeviceConfig, Framework, FrameworkAllocator, ReplayDriver, RequestIndex, Served,
};
use xmem_types::BlockId;

/// The requests of an estimate, without those of zero bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Predicted {
    pub(super) side: Side,
    /// Of each block, its number in the prediction.
    pub(super) ids: Vec<BlockId>,
    /// Of each event, the request.
    requests: Vec<usize>,
}

impl Predicted {
    /// If the device is too small, the figures are those of one with space for everything, as in
    /// an answer.
    pub(super) fn of(prediction: &Prediction<'_>) -> Self {
        Self::served(prediction, prediction.device()).unwrap_or_else(|| {
            let ample = prediction.device().without_limit();
            Self::served(prediction, &ample).unwrap_or_default()
        })
    }

    /// None if the device is too small.
    fn served(prediction: &Prediction<'_>, device: &DeviceConfig) -> Option<Self> {
        let allocator = prediction.allocator().over(Device::new(device), ());
        let mut driver = ReplayDriver::new(allocator, prediction.workload());
        let mut all = Self::default();
        let mut rows = vec![None; prediction.block_count()];
        for (at, request) in prediction.requests().iter().enumerate() {
            let row = &mut rows[request.block.index()];
            match driver.serve(RequestIndex(at), request).ok()? {
                Served::Allocated(handle) => {
                    let view = driver.allocator().block(handle);
                    *row = Some(all.side.alloc(view.requested, view.size));
                    all.ids.push(request.block);
                }
                Served::Freed => all.side.free(row.take().expect("it was allocated")),
                // An allocation of zero bytes leaves no trace in a recording.
                Served::Nothing => continue,
            }
            all.requests.push(at);
            all.side.record_usage(driver.allocator().allocated(), driver.allocator().reserved());
        }
        Some(all)
    }

    /// The first event of each iteration.
    pub(super) fn iteration_starts(&self, prediction: &Prediction<'_>) -> Vec<usize> {
        let starts = prediction.iteration_starts().iter();
        starts.map(|start| self.requests.partition_point(|request| request < start)).collect()
    }
}
