//! The recording as requests that were served: what it can be compared by.

use super::run::Run;
use crate::recording::StepKind;
use crate::side::{BlockRow, Side};
use std::collections::BTreeMap;
use xmem_simulator::{BlockUse, FrameworkAllocator, SeedError};
use xmem_snapshot::{EntryIndex, StackId};
use xmem_types::Addr;

/// A recording as requests that were served.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedRequests {
    pub(crate) side: Side,
    /// Of each block, the stack of its request.
    pub(crate) stacks: Vec<StackId>,
    /// Of each event, the trace entry it ends with.
    pub(crate) entries: Vec<EntryIndex>,
}

impl Run<'_, '_> {
    /// The requests of the recording. What blocks take beyond what was requested comes from the
    /// simulator; what is reserved, from the recording.
    pub(crate) fn requests(&self) -> Result<ServedRequests, SeedError> {
        let mut driver = self.driver()?;
        let mut naming = self.naming();
        let mut requests = ServedRequests::default();
        let mut held: BTreeMap<Addr, BlockRow> = BTreeMap::new();
        for block in self.start.segments.iter().flat_map(|segment| &segment.blocks) {
            if block.used == BlockUse::Allocated {
                let row = requests.side.alloc_before(block.requested, block.size);
                requests.stacks.push(self.stack_at_end(self.recording.to_recorded(block.addr)));
                held.insert(self.recording.to_recorded(block.addr), row);
            }
        }
        for (at, step) in self.steps.iter().enumerate() {
            self.step(at, step, &mut driver, &mut naming);
            let last = step.entries.end - 1;
            match step.kind {
                StepKind::Alloc { addr, size, .. } => {
                    let taken =
                        driver.block_size(addr).unwrap_or_else(|| self.setup.config.rounded(size));
                    held.insert(addr, requests.side.alloc(size, taken));
                    requests.stacks.push(self.recording.trace()[last].stack);
                }
                StepKind::Free { addr, .. } => {
                    let Some(row) = held.remove(&addr) else { continue };
                    requests.side.free(row);
                }
                StepKind::Failed { .. } | StepKind::Complete { .. } | StepKind::EmptyCache => {
                    continue;
                }
            }
            requests.entries.push(self.recording.index(last));
            requests.side.record_usage(driver.allocator.allocated(), self.levels.after(last));
        }
        Ok(requests)
    }

    /// The stack that requested a block which exists from before the recording to its end.
    fn stack_at_end(&self, addr: Addr) -> StackId {
        let mut blocks = self.recording.segments().flat_map(|segment| &segment.blocks);
        blocks.find(|block| block.address == addr).map_or(StackId::EMPTY, |block| block.stack)
    }
}
