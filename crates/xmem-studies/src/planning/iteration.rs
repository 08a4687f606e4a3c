//! The iteration of a recording that stands for the others, and where it is cut from them.

use crate::block_size::PlannedMemory;
use std::ops::Range;
use xmem_types::{BlockId, Bytes, IterationId, Request, RequestKind};

/// A block with the requests that make and free it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) block: BlockId,
    /// Bytes that the program requests.
    pub(super) requested: Bytes,
    /// The same, rounded.
    pub(super) size: Bytes,
    pub(super) born: usize,
    /// None if it is never freed.
    pub(super) died: Option<usize>,
}

impl Life {
    /// True if it is made and freed by requests of `window`.
    pub(super) fn is_within(&self, window: &Range<usize>) -> bool {
        window.contains(&self.born) && self.died.is_some_and(|died| died < window.end)
    }

    /// True if it is live at some time in `window`.
    pub(super) fn overlaps(&self, window: &Range<usize>) -> bool {
        self.born < window.end && self.died.is_none_or(|died| died >= window.start)
    }

    /// How long it is live, in requests.
    pub(super) fn lasts(&self) -> usize {
        self.died.map_or(usize::MAX, |died| died - self.born)
    }

    /// True if it is live after a request.
    pub(super) fn is_live_after(&self, request: usize) -> bool {
        self.born <= request && self.died.is_none_or(|died| died > request)
    }
}

/// The lives of all blocks, in the order in which they are made.
pub(super) fn lives(requests: &[Request], memory: PlannedMemory) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    let mut by_block: Vec<Option<usize>> = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        let block = request.block;
        if by_block.len() <= block.index() {
            by_block.resize(block.index() + 1, None);
        }
        match request.kind {
            RequestKind::Alloc { size, .. } => {
                by_block[block.index()] = Some(lives.len());
                let size = (size, memory.rounded(size));
                lives.push(Life { block, requested: size.0, size: size.1, born: at, died: None });
            }
            RequestKind::Free => {
                if let Some(life) = by_block[block.index()].take() {
                    lives[life].died = Some(at);
                }
            }
        }
    }
    lives
}

/// The largest sum of the sizes of live blocks, and the first request after which it is reached.
pub(super) fn largest_load<'a>(lives: impl Iterator<Item = &'a Life>) -> (usize, Bytes) {
    let mut changes: Vec<(usize, i128)> = Vec::new();
    for life in lives {
        changes.push((life.born, i128::from(life.size.get())));
        changes.extend(life.died.map(|died| (died, -i128::from(life.size.get()))));
    }
    changes.sort_unstable();
    let (mut load, mut largest) = (0, (0, 0));
    for (at, change) in changes {
        load += change;
        if load > largest.1 {
            largest = (at, load);
        }
    }
    (largest.0, Bytes(largest.1 as u64))
}

/// The iteration that stands for the others, with its requests: among those between two others, the one whose own
/// blocks have the largest load; the first of equal ones. None if there are no iterations.
///
/// An iteration is cut where the least memory is live: the first such place in the first half of its requests, which
/// lies behind `zero_grad` where that is at the start. So the gradients that one iteration leaves to the next one are
/// planned with the iteration that made them.
pub(super) fn typical(
    lives: &[Life],
    starts: &[usize],
    requests: usize,
) -> Option<(IterationId, Range<usize>)> {
    let windows = windows(lives, starts, requests);
    let iteration = typical_of(lives, &windows)?;
    Some((iteration, windows[iteration.index()].clone()))
}

/// The same of these windows.
pub(super) fn typical_of(lives: &[Life], windows: &[Range<usize>]) -> Option<IterationId> {
    // The first iteration makes the optimizer's state and chooses algorithms.
    let from = usize::from(windows.len() > 1);
    let load = |window: &Range<usize>| {
        let born = |request| lives.partition_point(|life| life.born < request);
        let made = &lives[born(window.start)..born(window.end)];
        largest_load(made.iter().filter(|life| life.is_within(window))).1
    };
    let typical = windows
        .iter()
        .enumerate()
        .skip(from)
        .map(|(iteration, window)| (load(window), iteration))
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    typical.map(|(_, iteration)| IterationId::new(iteration))
}

/// The requests of each iteration that another one follows; of the only iteration if there is one.
pub(super) fn windows(lives: &[Life], starts: &[usize], requests: usize) -> Vec<Range<usize>> {
    if let [only] = *starts {
        return std::iter::once(only..requests).collect();
    }
    let after = loads(lives, requests);
    let ends = starts.iter().skip(1).copied().chain([requests]);
    let cuts: Vec<usize> = starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| {
            let half = (start..start + (end.saturating_sub(start)) / 2 + 1).filter(|&at| at > 0);
            half.min_by_key(|&at| after[at - 1]).unwrap_or(start)
        })
        .collect();
    cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Live bytes after each request.
fn loads(lives: &[Life], requests: usize) -> Vec<i128> {
    let mut changes = vec![0i128; requests];
    for life in lives {
        changes[life.born] += i128::from(life.size.get());
        if let Some(died) = life.died {
            changes[died] -= i128::from(life.size.get());
        }
    }
    let mut load = 0;
    for change in &mut changes {
        load += *change;
        *change = load;
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_types::StreamId;

    fn alloc(block: u32, blocks: u64) -> Request {
        let kind = RequestKind::Alloc { size: Bytes(512 * blocks), stream: StreamId(0) };
        Request { block: BlockId(block), kind }
    }

    fn free(block: u32) -> Request {
        Request { block: BlockId(block), kind: RequestKind::Free }
    }

    /// Three iterations: `zero_grad`, a batch, activations, gradients. The parameter is block 0.
    fn loop_with_zero_grad_first() -> (Vec<Request>, Vec<usize>) {
        let (mut requests, mut starts) = (vec![alloc(0, 9)], Vec::new());
        for iteration in 0..4u32 {
            let [batch, activation, gradient] = [1, 2, 3].map(|k| 3 * iteration + k);
            starts.push(requests.len());
            if iteration > 0 {
                requests.extend([free(gradient - 3)]);
            }
            requests.extend([alloc(batch, 1), alloc(activation, u64::from(4 + iteration % 3))]);
            requests.extend([alloc(gradient, 2), free(activation), free(batch)]);
        }
        (requests, starts)
    }

    #[test]
    fn an_iteration_ends_where_the_next_one_has_cleared_the_gradients() {
        let (requests, starts) = loop_with_zero_grad_first();
        let lives = lives(&requests, PlannedMemory::Gpu);
        let (iteration, window) = typical(&lives, &starts, requests.len()).expect("iterations");
        assert_eq!(iteration, IterationId(2), "its activation is the largest");
        let inside = lives.iter().filter(|life| life.is_within(&window));
        assert_eq!(inside.map(|life| life.block.0).collect::<Vec<_>>(), [7, 8, 9]);
    }

    #[test]
    fn a_recording_of_one_iteration_is_taken_to_its_end() {
        let requests = [alloc(0, 9), alloc(1, 1), free(1), alloc(2, 1)];
        let lives = lives(&requests, PlannedMemory::Gpu);
        let (_, window) = typical(&lives, &[1], 4).expect("an iteration");
        assert_eq!(window, 1..4);
        assert!(typical(&lives, &[], 4).is_none());
    }
}
