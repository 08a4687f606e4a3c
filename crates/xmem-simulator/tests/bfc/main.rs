//! TensorFlow's allocator: against TensorFlow itself, against a slow model of it, and its laws.

mod controls;
mod model;
mod oracle;
mod recorded;

use xmem_simulator::{BfcAllocator, BlockUse, FrameworkAllocator};

/// A region with its chunks: where it starts, and the size of each chunk with what was asked for.
type Region = (u64, Vec<(u64, Option<u64>)>);

/// The regions that there are, by address.
fn regions(allocator: &BfcAllocator) -> Vec<Region> {
    let region = |state: xmem_simulator::SegmentState| {
        let chunks = state.blocks.iter().map(|chunk| {
            let asked = (chunk.used == BlockUse::Allocated).then_some(chunk.requested.get());
            (chunk.size.get(), asked)
        });
        (state.addr.0, chunks.collect())
    };
    allocator.state().into_iter().map(region).collect()
}
