//! Links between backward nodes and the forward operators that made them.

use crate::names::Names;
use crate::optree::OpTree;
use crate::recomputation;
use rustc_hash::FxHashMap;
use xmem_trace::{FlowKind, FlowTable, OpKind, OpTable};
use xmem_types::{Nanos, OpId, ThreadIdx};

/// Per operator: the forward operator of a backward node.
#[derive(Clone, Debug, Default)]
pub struct Autograd {
    forward_of: FxHashMap<OpId, OpId>,
    /// Per node of a checkpointed segment that ran again: the operator whose tensors it uses.
    rerun_of: FxHashMap<OpId, OpId>,
    /// Per operator: the innermost node that it runs in, or is.
    node_of: Vec<Option<OpId>>,
}

impl Autograd {
    /// Links by sequence number: a backward node carries the number of the operator that made it.
    /// Several nested operators carry the same number; the last to start before the node is the
    /// one that made it (as Kineto's own forward/backward links have it). Numbers count per thread:
    /// where several threads run forward, Kineto's links decide instead.
    pub(crate) fn build(ops: &OpTable, flows: &FlowTable, tree: &OpTree, names: &Names) -> Self {
        let mut order: Vec<OpId> = (0..ops.len())
            .map(OpId::new)
            .filter(|o| ops.sequence[o.index()] >= 0 && ops.kind[o.index()] == OpKind::Operator)
            .collect();
        order.sort_unstable_by_key(|o| (ops.start[o.index()], *o));
        let mut latest: FxHashMap<i64, OpId> = FxHashMap::default();
        let mut forward_of = FxHashMap::default();
        let mut forward_thread: Option<ThreadIdx> = None;
        let mut several = false;
        for op in order {
            let i = op.index();
            if names.is_node(ops.name[i]) {
                if let Some(&forward) = latest.get(&ops.sequence[i]) {
                    forward_of.insert(op, forward);
                }
            } else if ops.forward_thread[i] == 0 {
                latest.insert(ops.sequence[i], op);
                several |= *forward_thread.get_or_insert(ops.thread[i]) != ops.thread[i];
            }
        }
        if several {
            for (forward, backward) in flow_pairs(ops, flows, tree) {
                if let Some(node) =
                    tree.path(backward).find(|&o| names.is_node(ops.name[o.index()]))
                {
                    forward_of.insert(node, forward);
                }
            }
        }
        // Parents come first in pre-order.
        let mut node_of = vec![None; ops.len()];
        for &op in tree.preorder() {
            let above = tree.parent(op).and_then(|p| node_of[p.index()]);
            node_of[op.index()] =
                if names.is_node(ops.name[op.index()]) { Some(op) } else { above };
        }
        let mut autograd = Self { forward_of, node_of, ..Self::default() };
        autograd.rerun_of = recomputation::reruns(ops, tree, &autograd).into_iter().collect();
        autograd
    }

    /// The innermost backward node (an `evaluate_function` operator) that an operator runs in, or
    /// is: backward of a checkpointed segment nests them.
    #[must_use]
    pub fn node_of(&self, op: OpId) -> Option<OpId> {
        self.node_of[op.index()]
    }

    /// The forward operator that made a backward node (an `evaluate_function` operator).
    #[must_use]
    pub fn forward_of(&self, node: OpId) -> Option<OpId> {
        self.forward_of.get(&node).copied()
    }

    /// The forward operator whose saved tensors a backward node uses: the one that made it, or, in a
    /// checkpointed segment that ran again within backward, the same one of the second run.
    #[must_use]
    pub fn saved_by(&self, node: OpId) -> Option<OpId> {
        self.rerun_of.get(&node).or_else(|| self.forward_of.get(&node)).copied()
    }

    /// Every (backward node, forward operator) pair, in no particular order.
    pub fn pairs(&self) -> impl Iterator<Item = (OpId, OpId)> + '_ {
        self.forward_of.iter().map(|(&b, &f)| (b, f))
    }
}

/// The operators at both ends of each `fwdbwd` link, in order of the links' ids.
fn flow_pairs(ops: &OpTable, flows: &FlowTable, tree: &OpTree) -> Vec<(OpId, OpId)> {
    let mut ends: Vec<(u64, bool, OpId)> = (0..flows.len())
        .filter_map(|i| {
            let op = op_at(ops, tree, flows.thread[i], flows.time[i])?;
            Some((flows.id[i], flows.kind[i] == FlowKind::Finish, op))
        })
        .collect();
    ends.sort_unstable();
    ends.windows(2)
        .filter(|w| w[0].0 == w[1].0 && !w[0].1 && w[1].1)
        .map(|w| (w[0].2, w[1].2))
        .collect()
}

/// The innermost operator with a sequence number that starts at `time`.
fn op_at(ops: &OpTable, tree: &OpTree, thread: ThreadIdx, time: Nanos) -> Option<OpId> {
    let order = tree.preorder();
    let key = |o: &OpId| (ops.thread[o.index()], ops.start[o.index()]);
    let from = order.partition_point(|o| key(o) < (thread, time));
    let to = order.partition_point(|o| key(o) <= (thread, time));
    order[from..to].iter().rfind(|o| ops.sequence[o.index()] >= 0).copied()
}
