//! The first request at which two runs part.

use xmem_analyzer::Phase;
use xmem_predict::{Timeline, TimelineBlock};
use xmem_types::{Bytes, IterationId};

/// The first request that is not the same in both runs: another kind, size or operator, or a free of another block.
/// All requests before it are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The number of the request, from 0.
    pub request: u64,
    /// The request of the first run; none if the run ends before.
    pub a: Option<RunRequest>,
    /// The request of the second run.
    pub b: Option<RunRequest>,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestAction {
    /// An allocation.
    Allocation,
    /// A free.
    Free,
}

/// A request of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// Allocation or free; none for a request without a block (of no bytes).
    pub kind: Option<RequestAction>,
    /// Bytes that the program requests, or frees.
    pub bytes: Bytes,
    /// The operator that allocates the block, or allocated it; empty where it is not known.
    pub op: String,
    /// Its module path; empty where it is not known.
    pub module: String,
    /// Its line; empty where it is not known.
    pub line: String,
    /// The phase of the request.
    pub phase: Phase,
    /// The iteration of the request; none before the first.
    pub iteration: Option<IterationId>,
    /// Bytes allocated after it.
    pub allocated: Bytes,
}

impl Divergence {
    /// Finds the first request that is not the same.
    pub(super) fn first(a: &Timeline, b: &Timeline) -> Option<Self> {
        let (requests_a, requests_b) = (requests(a), requests(b));
        let is_same = |x: Option<Block>, y: Option<Block>| match (x, y) {
            // Blocks have the same number as long as allocations are the same.
            (Some((kind_a, row_a)), Some((kind_b, row_b))) => {
                let (block_a, block_b) = (&a.blocks[row_a as usize], &b.blocks[row_b as usize]);
                kind_a == kind_b
                    && row_a == row_b
                    && block_a.requested == block_b.requested
                    && a.text(block_a.op) == b.text(block_b.op)
            }
            (None, None) => true,
            _ => false,
        };
        let both = requests_a.len().max(requests_b.len());
        let first = (0..both).find(|&at| match (requests_a.get(at), requests_b.get(at)) {
            (Some(&x), Some(&y)) => !is_same(x, y),
            _ => true,
        })?;
        Some(Self {
            request: first as u64,
            a: requests_a.get(first).map(|&block| RunRequest::new(a, first, block)),
            b: requests_b.get(first).map(|&block| RunRequest::new(b, first, block)),
        })
    }
}

/// What a request does to which block, by its row.
type Block = (RequestAction, u32);

/// The block of each request; none for requests of no bytes.
fn requests(timeline: &Timeline) -> Vec<Option<Block>> {
    let mut requests = vec![None; timeline.moments.len()];
    let mut set = |moment: u32, block: Block| {
        if let Some(request) = requests.get_mut(moment as usize) {
            *request = Some(block);
        }
    };
    for (row, block) in timeline.blocks.iter().enumerate() {
        let row = row as u32;
        set(block.start, (RequestAction::Allocation, row));
        if let Some(freed) = block.freed {
            set(freed, (RequestAction::Free, row));
        }
    }
    requests
}

impl RunRequest {
    fn new(timeline: &Timeline, at: usize, request: Option<Block>) -> Self {
        let spans = &timeline.phases;
        let span = spans.partition_point(|span| span.moments.end as usize <= at);
        let span = spans.get(span);
        let block = request.map(|(_, row)| &timeline.blocks[row as usize]);
        let text = |id: fn(&TimelineBlock) -> xmem_predict::TextId| {
            block.map(|block| timeline.text(id(block)).to_owned()).unwrap_or_default()
        };
        Self {
            kind: request.map(|(kind, _)| kind),
            bytes: block.map(|block| block.requested).unwrap_or_default(),
            op: text(|block| block.op),
            module: text(|block| block.module),
            line: text(|block| block.line),
            phase: span.map_or(Phase::Init, |span| span.phase),
            iteration: span.and_then(|span| span.iteration),
            allocated: timeline.moments[at].allocated,
        }
    }
}
