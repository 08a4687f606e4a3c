//! The operator tree of each thread, built by one sweep over start and end times.

use std::ops::Range;
use xmem_trace::{OpKind, OpTable};
use xmem_types::{Nanos, OpId, ThreadIdx};

const NONE: u32 = u32::MAX;

/// The nesting of operators.
///
/// Kineto writes only start and duration; nesting follows from them. A child belongs to the
/// innermost operator that is still open when it starts. Up to PyTorch 2.3 times are whole
/// microseconds, so that a child may seem to end one microsecond after its parent: such an end is
/// taken back to the parent's, or the parent's next child would become its child.
#[derive(Clone, Debug, Default)]
pub struct OpTree {
    parent: Vec<u32>,
    /// Rows in pre-order, thread by thread, by time within a thread.
    order: Vec<OpId>,
    /// Per position of `order`: the position after the last descendant.
    skip: Vec<u32>,
    /// Per row: its position in `order`.
    position: Vec<u32>,
    /// Per row: when it ends, after the correction above.
    end: Vec<Nanos>,
}

/// The time by which a child may seem to outlast its parent because of rounding.
pub(crate) const ROUNDING: Nanos = Nanos(1000);

impl OpTree {
    /// Builds the tree in O(n log n).
    #[must_use]
    pub fn build(ops: &OpTable) -> Self {
        Self::build_with(ops, |_| false, |_| false)
    }

    /// Builds the tree, knowing which rows are the engine's frames around backward nodes. What
    /// lasts no time and starts where such a frame ends is taken to be inside: times in whole
    /// microseconds show the end of a node like this. `is_work` tells the rows that may last longer than the operator
    /// that starts them, and run nothing of the program after it.
    pub(crate) fn build_with(
        ops: &OpTable,
        is_frame: impl Fn(usize) -> bool,
        is_work: impl Fn(usize) -> bool,
    ) -> Self {
        let n = ops.len();
        let order = start_order(ops);
        let mut parent = vec![NONE; n];
        let mut skip = vec![0; n];
        let mut position = vec![0; n];
        let mut ends = vec![Nanos::ZERO; n];
        let mut open: Vec<Open> = Vec::new();
        let mut thread = None;
        for (at, &id) in order.iter().enumerate() {
            let i = id.index();
            position[i] = at as u32;
            let start = ops.start[i];
            if thread != Some(ops.thread[i]) {
                close(&mut open, &mut skip, at, |_| true);
                thread = Some(ops.thread[i]);
            }
            let frame = is_frame(i);
            let instant = !frame && ops.duration[i] == Nanos::ZERO;
            close(&mut open, &mut skip, at, |o| {
                o.end < start || o.end == start && !(instant && o.in_frame)
            });
            let mut end = start + ops.duration[i];
            let mut in_frame = frame;
            if let Some(up) = open.last() {
                parent[i] = order[up.at].0;
                in_frame |= up.in_frame;
                if end > up.end && (end - up.end <= ROUNDING || is_work(i)) {
                    end = up.end;
                }
            }
            ends[i] = end;
            open.push(Open { at, end, in_frame });
        }
        close(&mut open, &mut skip, n, |_| true);
        Self { parent, order, skip, position, end: ends }
    }

    /// The operator or annotation that encloses `op`.
    #[must_use]
    pub fn parent(&self, op: OpId) -> Option<OpId> {
        match self.parent[op.index()] {
            NONE => None,
            row => Some(OpId(row)),
        }
    }

    /// `op` and everything that encloses it, innermost first.
    pub fn path(&self, op: OpId) -> impl Iterator<Item = OpId> + '_ {
        std::iter::successors(Some(op), |&o| self.parent(o))
    }

    /// The end of `op` (corrected for rounding, see [`OpTree`]).
    #[must_use]
    pub fn end(&self, op: OpId) -> Nanos {
        self.end[op.index()]
    }

    /// Every operator and annotation in pre-order, thread by thread.
    #[must_use]
    pub fn preorder(&self) -> &[OpId] {
        &self.order
    }

    /// The operators inside `op` (without it), in pre-order.
    #[must_use]
    pub fn descendants(&self, op: OpId) -> &[OpId] {
        let Range { start, end } = self.positions(op);
        &self.order[start + 1..end]
    }

    /// The positions of `op` and of the operators inside it in pre-order.
    #[must_use]
    pub fn positions(&self, op: OpId) -> Range<usize> {
        let at = self.position[op.index()] as usize;
        at..self.skip[at] as usize
    }

    /// The operator after `op` in pre-order.
    pub(crate) fn following(&self, op: OpId) -> Option<OpId> {
        self.order.get(self.position[op.index()] as usize + 1).copied()
    }

    /// The operators directly inside `op`, by time.
    pub fn children(&self, op: OpId) -> impl Iterator<Item = OpId> + '_ {
        let Range { start, end } = self.positions(op);
        let mut next = start + 1;
        std::iter::from_fn(move || {
            (next < end).then(|| {
                let child = self.order[next];
                next = self.skip[next] as usize;
                child
            })
        })
    }
}

/// An operator that has not ended yet.
struct Open {
    /// Its position in pre-order.
    at: usize,
    end: Nanos,
    /// True if it is, or lies in, a frame around a backward node.
    in_frame: bool,
}

fn close(open: &mut Vec<Open>, skip: &mut [u32], at: usize, ended: impl Fn(&Open) -> bool) {
    while let Some(top) = open.last() {
        if !ended(top) {
            break;
        }
        skip[top.at] = at as u32;
        open.pop();
    }
}

/// Rows by thread and start. Of rows that start together the longer one encloses the other; but
/// where times are whole microseconds and the file is in order of start, as Kineto writes it, the
/// file says which came first.
fn start_order(ops: &OpTable) -> Vec<OpId> {
    let mut order: Vec<OpId> = (0..ops.len()).map(OpId::new).collect();
    let whole = ops.start.iter().all(|t| t.get() % 1000 == 0);
    if whole && ops.start.is_sorted() {
        order.sort_by_key(|id| (ops.thread[id.index()], ops.start[id.index()]));
        return order;
    }
    order.sort_unstable_by_key(|&id| {
        let i = id.index();
        // Annotations enclose operators that start and end with them.
        let rank = u8::from(ops.kind[i] == OpKind::Operator);
        (ops.thread[i], ops.start[i], std::cmp::Reverse(ops.duration[i]), rank, id)
    });
    order
}

/// Finds the innermost operator at each of a rising sequence of times on one thread.
pub(crate) struct Sweep<'a> {
    ops: &'a OpTable,
    tree: &'a OpTree,
    rows: &'a [OpId],
    next: usize,
    open: Vec<OpId>,
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(ops: &'a OpTable, tree: &'a OpTree, thread: ThreadIdx) -> Self {
        let from = tree.order.partition_point(|o| ops.thread[o.index()] < thread);
        let to = tree.order.partition_point(|o| ops.thread[o.index()] <= thread);
        Self { ops, tree, rows: &tree.order[from..to], next: 0, open: Vec::new() }
    }

    /// The innermost operator with `start <= time <= end`; times must not decrease.
    pub(crate) fn innermost(&mut self, time: Nanos) -> Option<OpId> {
        while let Some(&row) = self.rows.get(self.next) {
            let start = self.ops.start[row.index()];
            if start > time {
                break;
            }
            self.close_before(start);
            self.open.push(row);
            self.next += 1;
        }
        while self.open.last().is_some_and(|&o| self.end(o) < time) {
            self.open.pop();
        }
        self.open.last().copied()
    }

    fn close_before(&mut self, time: Nanos) {
        while self.open.last().is_some_and(|&o| self.end(o) <= time) {
            self.open.pop();
        }
    }

    fn end(&self, op: OpId) -> Nanos {
        self.tree.end(op)
    }
}

#[cfg(test)]
mod tests {
    use super::OpTree;
    use xmem_trace::{OpKind, OpTable, SignatureId};
    use xmem_types::{Nanos, OpId, Sym, ThreadIdx};

    #[test]
    fn a_receive_of_gloo_that_outlasts_its_operator_holds_nothing_that_follows() {
        let mut ops = OpTable::default();
        // c10d::recv_, gloo:recv inside it, and an operator that runs while it waits.
        for (start, end) in [(0, 10_000), (5_000, 90_000), (20_000, 95_000)] {
            ops.start.push(Nanos(start));
            ops.duration.push(Nanos(end - start));
            ops.name.push(Sym::EMPTY);
            ops.thread.push(ThreadIdx(0));
            ops.kind.push(OpKind::Operator);
            ops.sequence.push(-1);
            ops.forward_thread.push(0);
            ops.signature.push(SignatureId(0));
        }
        let parents = |is_work: fn(usize) -> bool| {
            let tree = OpTree::build_with(&ops, |_| false, is_work);
            [1, 2].map(|row| tree.parent(OpId(row)))
        };
        assert_eq!(parents(|row| row == 1), [Some(OpId(0)), None]);
        assert_eq!(parents(|_| false), [Some(OpId(0)), Some(OpId(1))]);
        let tree = OpTree::build_with(&ops, |_| false, |row| row == 1);
        assert_eq!(tree.end(OpId(1)), Nanos(10_000));
    }
}
