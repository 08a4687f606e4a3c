//! Blocks of lists that are no recordings: operations on an allocator, and tables of blocks.

use super::PlanningError;
use super::blocks::{BlockFacts, PlanBlocks, PlanSource};
use super::breakdown::JobPeaks;
use crate::block_size::rounded;
use std::collections::BTreeMap;
use thiserror::Error;
use xmem_planner::{BlockList, CsvBlocks, PlannedBlock};
use xmem_predict::{AllocatorError, OperationList, SimulationSettings, StepError};
use xmem_simulator::Operation;
use xmem_types::BlockId;

/// A list of operations that cannot be planned.
#[derive(Debug, Error)]
pub enum PlanListError {
    /// Its allocator cannot be simulated.
    #[error(transparent)]
    Allocator(#[from] AllocatorError),
    /// An operation makes no sense.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Its blocks cannot be planned.
    #[error(transparent)]
    Planning(#[from] PlanningError),
}

impl PlanBlocks {
    /// The blocks of a list of operations. Operations other than allocations and frees change the figures of the
    /// list's own allocator, and not the plans.
    ///
    /// # Errors
    /// If an operation makes no sense, or the list's allocator cannot be simulated.
    pub fn of_operations(
        operations: &OperationList,
        settings: &SimulationSettings,
    ) -> Result<Self, PlanListError> {
        let mut simulation = settings.start(operations)?;
        for operation in &operations.operations {
            simulation.step(operation)?;
            simulation.clear_events();
        }
        let summary = simulation.summary();
        let job = (summary.failures == 0).then_some(JobPeaks {
            allocated: summary.peak_allocated,
            reserved: summary.peak_reserved,
        });
        let (blocks, facts) = blocks_of(&operations.operations);
        Ok(Self {
            list: BlockList::new(blocks).map_err(PlanningError::List)?,
            facts,
            source: PlanSource::Operations,
            outside: None,
            job,
            breakdown: None,
            setup: Some(simulation.setup().clone()),
        })
    }

    /// The blocks of a table, with the sizes and the ticks that it gives.
    #[must_use]
    pub fn of_table(table: CsvBlocks) -> Self {
        let CsvBlocks { list, names } = table;
        let facts = |(name, block): (String, &PlannedBlock)| BlockFacts {
            name,
            requested: block.size,
            role: None,
            phase: None,
            op: String::new(),
        };
        Self {
            facts: names.into_iter().zip(list.blocks()).map(facts).collect(),
            list,
            source: PlanSource::Table,
            outside: None,
            job: None,
            breakdown: None,
            setup: None,
        }
    }
}

/// The blocks with bytes, in the order in which they are made. Each allocation and each free is a tick.
fn blocks_of(operations: &[Operation]) -> (Vec<PlannedBlock>, Vec<BlockFacts>) {
    let (mut blocks, mut facts) = (Vec::new(), Vec::new());
    let mut live: BTreeMap<BlockId, usize> = BTreeMap::new();
    let mut tick = 0;
    for operation in operations {
        match *operation {
            Operation::Alloc { block, size, .. } if size.get() > 0 => {
                live.insert(block, blocks.len());
                let size = (size, rounded(size));
                blocks.push(PlannedBlock {
                    size: size.1,
                    start: tick,
                    end: u32::MAX,
                    operator: None,
                });
                let (name, op) = (block.0.to_string(), String::new());
                facts.push(BlockFacts { name, requested: size.0, role: None, phase: None, op });
                tick += 1;
            }
            Operation::Free(block) => {
                if let Some(id) = live.remove(&block) {
                    blocks[id].end = tick;
                    tick += 1;
                }
            }
            _ => {}
        }
    }
    for id in live.into_values() {
        blocks[id].end = tick;
    }
    (blocks, facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_types::{Bytes, StreamId};

    #[test]
    fn each_allocation_and_each_free_is_a_tick() {
        let alloc = |id, size| {
            let (block, size, stream) = (BlockId(id), Bytes(size), StreamId(0));
            Operation::Alloc { block, size, stream }
        };
        let operations = vec![
            alloc(1, 100),
            Operation::EmptyCache,
            alloc(2, 0),
            alloc(3, 600),
            Operation::Free(BlockId(2)),
            Operation::Free(BlockId(1)),
            alloc(1, 1),
        ];
        let list = OperationList { operations, ..OperationList::default() };
        let blocks = PlanBlocks::of_operations(&list, &SimulationSettings::default());
        let blocks = blocks.expect("a list");
        let block =
            |size, start, end| PlannedBlock { size: Bytes(size), start, end, operator: None };
        let expected = [block(512, 0, 2), block(1024, 1, 4), block(512, 3, 4)];
        assert_eq!(blocks.list.blocks(), expected);
        let names = blocks.facts.iter().map(|block| block.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["1", "3", "1"]);
        let job = blocks.job.expect("all were served");
        assert_eq!((job.allocated, job.reserved), (Bytes(1536), Bytes::mib(2)));
    }
}
