//! The estimate's side: its requests, served by its allocator.

use super::side::Side;
use xmem::Prediction;
use xmem_simulator::{Attempts, Device, DeviceConfig, Framework, FrameworkAllocator, RequestIndex};
use xmem_types::{BlockId, RequestKind};

/// The requests of an estimate, as far as they ask for something.
#[derive(Clone, Debug, Default)]
pub(super) struct Predicted {
    pub(super) side: Side,
    /// Of each block, its number in the prediction.
    pub(super) ids: Vec<BlockId>,
    /// Of each event, the request.
    requests: Vec<usize>,
}

impl Predicted {
    /// Where the device is too small, the figures are those of one with room for everything, as in
    /// an answer.
    pub(super) fn of(prediction: &Prediction<'_>) -> Self {
        Self::served(prediction, prediction.device()).unwrap_or_else(|| {
            let ample = DeviceConfig { capacity: None, ..*prediction.device() };
            Self::served(prediction, &ample).unwrap_or_default()
        })
    }

    /// None if the device is too small.
    fn served(prediction: &Prediction<'_>, device: &DeviceConfig) -> Option<Self> {
        let mut allocator = prediction.allocator().over(Device::new(device), ());
        let mut attempts = Attempts::new(prediction.workload().fallbacks);
        let mut all = Self::default();
        let mut held = vec![None; prediction.block_count()];
        for (row, request) in prediction.requests().iter().enumerate() {
            let at = RequestIndex(row);
            match request.kind {
                RequestKind::Alloc { size, stream } => {
                    let wanted = (request.block, size);
                    let handle = attempts.allocate(&mut allocator, at, wanted, stream).ok()?;
                    // Nothing is allocated for nothing, and no recording tells of it.
                    let Some(handle) = handle else { continue };
                    let view = allocator.block(handle);
                    let block = all.side.alloc(view.requested, view.size);
                    all.ids.push(request.block);
                    held[request.block.index()] = Some((handle, block));
                }
                RequestKind::Free => {
                    let Some((handle, block)) = held[request.block.index()].take() else {
                        continue;
                    };
                    allocator.free(at, handle);
                    all.side.free(block);
                }
            }
            all.requests.push(row);
            all.side.reached(allocator.allocated(), allocator.reserved());
        }
        Some(all)
    }

    /// The first event of each iteration.
    pub(super) fn iteration_starts(&self, prediction: &Prediction<'_>) -> Vec<usize> {
        let starts = prediction.iteration_starts().iter();
        starts.map(|start| self.requests.partition_point(|request| request < start)).collect()
    }
}
