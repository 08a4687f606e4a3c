//! Candidates in a tree, for long lists.
//!
//! A block is a point (start, end), an interval a quadrant, and the answer the least rank in it: a k-d tree with
//! the least rank of each node. The tree depends on the blocks alone, and an order only fills in the ranks.
//! A query visits O(√n) nodes at worst, and rarely more than some dozens, because nodes without a better rank are skipped.

use crate::instance::Item;

/// The most points of a leaf.
const LEAF: usize = 8;
/// The rank of a block that is placed.
const TAKEN: u32 = u32::MAX;

#[derive(Clone)]
pub(in crate::planners::skyline) struct Tree {
    /// The blocks in the order of the leaves.
    points: Vec<Point>,
    /// By block: its place in `points`.
    places: Vec<u32>,
    /// A heap: the children of node k are 2k and 2k + 1, and the root is 1.
    nodes: Vec<Node>,
    /// The number of leaves, a power of two: the first leaf's node.
    leaves: usize,
    /// By rank: the block.
    order: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Point {
    start: u32,
    end: u32,
    rank: u32,
    block: u32,
}

/// The bounds of the points of a node, placed or not, and the least rank of those that are not.
#[derive(Clone, Copy)]
struct Node {
    starts: (u32, u32),
    ends: (u32, u32),
    rank: u32,
}

impl Tree {
    pub(super) fn new(blocks: &[Item]) -> Self {
        let point = |(block, item): (usize, &Item)| Point {
            start: item.start,
            end: item.end,
            rank: TAKEN,
            block: block as u32,
        };
        let points: Vec<Point> = blocks.iter().enumerate().map(point).collect();
        let leaves = points.len().div_ceil(LEAF).next_power_of_two();
        let empty = Node { starts: (u32::MAX, 0), ends: (u32::MAX, 0), rank: TAKEN };
        let mut tree = Self {
            places: vec![0; points.len()],
            nodes: vec![empty; 2 * leaves],
            order: Vec::with_capacity(points.len()),
            points,
            leaves,
        };
        let all = tree.points.len();
        sort(&mut tree.points, all, leaves, 0..leaves, true);
        for (place, point) in tree.points.iter().enumerate() {
            tree.places[point.block as usize] = place as u32;
        }
        for leaf in 0..leaves {
            for point in &tree.points[tree.range(leaf)] {
                let node = &mut tree.nodes[leaves + leaf];
                node.starts = (node.starts.0.min(point.start), node.starts.1.max(point.start));
                node.ends = (node.ends.0.min(point.end), node.ends.1.max(point.end));
            }
        }
        for node in (1..leaves).rev() {
            let [one, other] = [tree.nodes[2 * node], tree.nodes[2 * node + 1]];
            let around = |a: (u32, u32), b: (u32, u32)| (a.0.min(b.0), a.1.max(b.1));
            tree.nodes[node].starts = around(one.starts, other.starts);
            tree.nodes[node].ends = around(one.ends, other.ends);
        }
        tree
    }

    /// Makes these blocks the candidates, ranked in this order.
    pub(super) fn fill(&mut self, order: &[u32]) {
        if order.len() < self.points.len() {
            self.points.iter_mut().for_each(|point| point.rank = TAKEN);
        }
        for (rank, &block) in order.iter().enumerate() {
            self.points[self.places[block as usize] as usize].rank = rank as u32;
        }
        self.order.clear();
        self.order.extend_from_slice(order);
        for leaf in 0..self.leaves {
            self.nodes[self.leaves + leaf].rank = self.least(leaf);
        }
        for node in (1..self.leaves).rev() {
            self.nodes[node].rank = self.nodes[2 * node].rank.min(self.nodes[2 * node + 1].rank);
        }
    }

    /// Takes the first candidate that lives within the sections `start..end`, and returns its rank.
    pub(super) fn take(&mut self, start: u32, end: u32) -> Option<u32> {
        let mut rank = TAKEN;
        self.find(1, start, end, &mut rank);
        if rank == TAKEN {
            return None;
        }
        let place = self.places[self.order[rank as usize] as usize] as usize;
        self.points[place].rank = TAKEN;
        let mut leaf = place * self.leaves / self.points.len();
        while self.range(leaf).end <= place {
            leaf += 1;
        }
        let mut node = self.leaves + leaf;
        let mut least = self.least(leaf);
        while node > 0 && self.nodes[node].rank != least {
            self.nodes[node].rank = least;
            least = least.min(self.nodes[node ^ 1].rank);
            node /= 2;
        }
        Some(rank)
    }

    fn find(&self, node: usize, start: u32, end: u32, rank: &mut u32) {
        let Node { starts, ends, rank: least } = self.nodes[node];
        if least >= *rank || starts.1 < start || ends.0 > end {
            return;
        }
        if starts.0 >= start && ends.1 <= end {
            *rank = least;
        } else if node >= self.leaves {
            for point in &self.points[self.range(node - self.leaves)] {
                if point.start >= start && point.end <= end {
                    *rank = (*rank).min(point.rank);
                }
            }
        } else {
            let first =
                2 * node + usize::from(self.nodes[2 * node + 1].rank < self.nodes[2 * node].rank);
            self.find(first, start, end, rank);
            self.find(first ^ 1, start, end, rank);
        }
    }

    /// The points of a leaf.
    fn range(&self, leaf: usize) -> std::ops::Range<usize> {
        cut(self.points.len(), self.leaves, leaf)..cut(self.points.len(), self.leaves, leaf + 1)
    }

    fn least(&self, leaf: usize) -> u32 {
        self.points[self.range(leaf)].iter().map(|point| point.rank).min().unwrap_or(TAKEN)
    }
}

/// The place in `points` at which a leaf begins.
const fn cut(points: usize, leaves: usize, leaf: usize) -> usize {
    (points as u64 * leaf as u64 / leaves as u64) as usize
}

/// Sorts the points of the leaves `range`, of `leaves` leaves with `all` points, by start and by end in turn.
fn sort(
    points: &mut [Point],
    all: usize,
    leaves: usize,
    range: std::ops::Range<usize>,
    by_start: bool,
) {
    if range.len() <= 1 || points.is_empty() {
        return;
    }
    let middle = range.start + range.len() / 2;
    let at = cut(all, leaves, middle) - cut(all, leaves, range.start);
    if at < points.len() {
        points.select_nth_unstable_by_key(at, |point| {
            let key = if by_start { (point.start, point.end) } else { (point.end, point.start) };
            (key, point.block)
        });
    }
    let (low, high) = points.split_at_mut(at);
    sort(low, all, leaves, range.start..middle, !by_start);
    sort(high, all, leaves, middle..range.end, !by_start);
}
