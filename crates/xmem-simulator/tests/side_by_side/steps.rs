//! Steps of a random program. What they stand for depends on what is there at that point, so that
//! every list of steps is a program.

use crate::model::Model;
use xmem_simulator::{Operation, PoolOptions, PoolService, PrivatePoolId, Splitting};
use xmem_types::{BlockId, Bytes, StreamId};

/// One step. Where it names a block or a pool, it means one of those that there are.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Alloc { size: u64, stream: u32 },
    Free(u32),
    FreeNewest,
    RecordStream { block: u32, stream: u32 },
    Synchronize,
    EmptyCache,
    Fraction(f64),
    ResetPeaks,
    Capacity(u64),
    EnterPool { pool: u32, keyword: PoolKeyword },
    BeginCapture { pool: u32, stream: u32 },
    LeaveNewest,
    Leave(u32),
    Release(u32),
}

/// The keyword that a `MemPool` is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PoolKeyword {
    #[default]
    None,
    NoSplit,
    UseOnOom,
    Both,
}

impl PoolKeyword {
    fn options(self) -> PoolOptions {
        PoolOptions {
            splitting: match self {
                Self::NoSplit | Self::Both => Splitting::Never,
                Self::None | Self::UseOnOom => Splitting::Usual,
            },
            service: match self {
                Self::UseOnOom | Self::Both => PoolService::LastResort,
                Self::None | Self::NoSplit => PoolService::Scopes,
            },
        }
    }
}

/// Pools of graphs get other numbers than `MemPool`s.
const GRAPHS: u32 = 1000;

impl Step {
    /// The operation of the step in the present state of the model; none if it does not apply.
    pub(super) fn operation(&self, model: &Model, next_block: &mut u32) -> Option<Operation> {
        let live = model.live();
        let pick = |list: &[BlockId], i: u32| list.get(i as usize % list.len().max(1)).copied();
        let scopes = model.open_scopes();
        let operation = match *self {
            Self::Alloc { size, stream } => {
                *next_block += 1;
                let block = BlockId(*next_block);
                Some(Operation::Alloc { block, size: Bytes(size), stream: StreamId(stream) })
            }
            Self::Free(i) => pick(&live, i).map(Operation::Free),
            Self::FreeNewest => live.last().copied().map(Operation::Free),
            Self::RecordStream { block, stream } => pick(&live, block)
                .map(|block| Operation::RecordStream { block, stream: StreamId(stream) }),
            Self::Synchronize => Some(Operation::Synchronize),
            Self::EmptyCache => Some(Operation::EmptyCache),
            Self::Fraction(fraction) => Some(Operation::MemoryFraction(fraction)),
            Self::ResetPeaks => Some(Operation::ResetPeaks),
            Self::Capacity(bytes) => Some(Operation::Capacity(Bytes(bytes))),
            Self::EnterPool { pool, keyword } => {
                Some(Operation::EnterPool { pool: PrivatePoolId(pool), options: keyword.options() })
            }
            Self::BeginCapture { pool, stream } => Some(Operation::BeginCapture {
                pool: PrivatePoolId(GRAPHS + pool),
                stream: StreamId(stream),
            }),
            Self::LeaveNewest => scopes.last().copied().map(Operation::LeavePool),
            Self::Leave(i) => {
                scopes.get(i as usize % scopes.len().max(1)).map(|&pool| Operation::LeavePool(pool))
            }
            Self::Release(i) => {
                let pools = model.used_pools();
                pools.get(i as usize % pools.len().max(1)).map(|&pool| Operation::ReleasePool(pool))
            }
        };
        operation.filter(|operation| !model.refuses(operation))
    }
}

/// The operations that end a program: all scopes are left, everything is freed.
pub(super) fn the_end(model: &Model) -> Vec<Operation> {
    let leave = model.open_scopes().into_iter().rev().map(Operation::LeavePool);
    leave.chain(model.live().into_iter().map(Operation::Free)).collect()
}
