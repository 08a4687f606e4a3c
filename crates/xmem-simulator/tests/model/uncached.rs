//! `PYTORCH_NO_CUDA_MEMORY_CACHING`: every allocation is a `cudaMalloc`.

use super::Outcome;
use super::device::ModelDevice;
use std::collections::BTreeMap;
use xmem_simulator::{DeviceConfig, Operation};
use xmem_types::BlockId;

#[derive(Clone, Debug)]
pub(crate) struct UncachedModel {
    pub(crate) device: ModelDevice,
    held: BTreeMap<BlockId, Option<u64>>,
}

impl UncachedModel {
    pub(crate) fn new(device: &DeviceConfig) -> Self {
        Self { device: ModelDevice::new(device), held: BTreeMap::new() }
    }

    pub(crate) fn apply(&mut self, operation: &Operation) -> Outcome {
        match *operation {
            Operation::Alloc { block, size, .. } => {
                if self.held.contains_key(&block) {
                    return Outcome::Refused;
                }
                let (addr, outcome) = match size.get() {
                    0 => (None, Outcome::Nothing),
                    n if n >= 1 << 60 => (None, Outcome::TooLarge),
                    n => match self.device.malloc(n) {
                        Some(addr) => (Some(addr), Outcome::Block(addr)),
                        None => (None, Outcome::Full { rounded: n, tried: n }),
                    },
                };
                self.held.insert(block, addr);
                outcome
            }
            Operation::Free(block) => {
                let Some(addr) = self.held.remove(&block) else { return Outcome::Refused };
                if let Some(addr) = addr {
                    self.device.free(addr);
                }
                Outcome::Nothing
            }
            Operation::Capacity(available) => {
                self.device.limit = Some(available.get());
                Outcome::Nothing
            }
            _ => Outcome::Nothing,
        }
    }
}
