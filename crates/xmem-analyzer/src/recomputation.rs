//! Forward operators that run again within backward: checkpointed segments that are not reentrant.
//!
//! `torch.utils.checkpoint(use_reentrant=False)` runs a segment with hooks that keep no tensor; the first
//! backward node that asks for one runs the segment again (torch/utils/checkpoint.py,
//! `_checkpoint_without_reentrant_generator`, `_checkpoint_hook.unpack_hook`). The nodes are those of the
//! first run, and the tensors that they use those of the second. Its operators have sequence numbers of
//! their own, which no node carries: they are as far from those of the first run throughout the segment.

use crate::autograd::Autograd;
use crate::optree::OpTree;
use rustc_hash::FxHashMap;
use xmem_trace::{OpKind, OpTable};
use xmem_types::{OpId, Sym};

/// Returns the operator of the second run for each backward node of a segment that ran again, in no
/// particular order.
pub(crate) fn reruns(ops: &OpTable, tree: &OpTree, autograd: &Autograd) -> Vec<(OpId, OpId)> {
    let mut nodes: FxHashMap<i64, Vec<OpId>> = FxHashMap::default();
    for (node, _) in autograd.pairs() {
        nodes.entry(ops.sequence[node.index()]).or_default().push(node);
    }
    let mut found = Vec::new();
    for (node, again) in runs_in_nodes(ops, tree, autograd, &nodes) {
        let Some(first) = autograd.forward_of(node) else { continue };
        let Some(distance) = distance(ops, &again, (node, first), &nodes, autograd) else {
            continue;
        };
        for (&sequence, &op) in &again.latest {
            let of_first = nodes.get(&(sequence - distance)).into_iter().flatten();
            let same = |&&node: &&OpId| made_by(ops, autograd, node) == Some(ops.name[op.index()]);
            found.extend(of_first.filter(same).map(|&node| (node, op)));
        }
    }
    found
}

/// What ran forward within one backward node.
#[derive(Default)]
struct Again {
    /// Per sequence number the last operator to start, which is the one that makes a node.
    latest: FxHashMap<i64, OpId>,
    /// The numbers, in order of time.
    sequences: Vec<i64>,
}

/// The runs of forward operators within backward nodes that no node follows.
fn runs_in_nodes(
    ops: &OpTable,
    tree: &OpTree,
    autograd: &Autograd,
    nodes: &FxHashMap<i64, Vec<OpId>>,
) -> Vec<(OpId, Again)> {
    let mut runs: Vec<(OpId, Again)> = Vec::new();
    for &op in tree.preorder() {
        let i = op.index();
        let sequence = ops.sequence[i];
        let Some(node) = autograd.node_of(op).filter(|&node| node != op) else { continue };
        let runs_forward = sequence >= 0
            && ops.kind[i] == OpKind::Operator
            && ops.forward_thread[i] == 0
            && !nodes.contains_key(&sequence);
        if !runs_forward {
            continue;
        }
        if runs.last().is_none_or(|(n, _)| *n != node) {
            runs.push((node, Again::default()));
        }
        let Some((_, again)) = runs.last_mut() else { continue };
        if again.latest.insert(sequence, op).is_none() {
            again.sequences.push(sequence);
        }
    }
    runs
}

/// The distance between the sequence numbers of both runs: the one at which every node belongs to an
/// operator of the same name.
///
/// The node that asks first is that of the last operator which keeps a tensor, and the second run ends
/// with it (`_StopRecomputationError`): the largest distance is tried first.
fn distance(
    ops: &OpTable,
    again: &Again,
    (node, first): (OpId, OpId),
    nodes: &FxHashMap<i64, Vec<OpId>>,
    autograd: &Autograd,
) -> Option<i64> {
    let name = |op: OpId| ops.name[op.index()];
    let asked = ops.sequence[node.index()];
    // The copy of the last tensor (`detach`) has the number of whatever follows the segment.
    let last = again.sequences.last().copied();
    let fits = |distance: i64| {
        again.latest.iter().filter(|&(&sequence, _)| Some(sequence) != last).all(
            |(&sequence, &op)| {
                let mut of_first = nodes.get(&(sequence - distance)).into_iter().flatten();
                of_first.all(|&node| made_by(ops, autograd, node) == Some(name(op)))
            },
        )
    };
    let is_asked =
        |sequence: &&i64| again.latest.get(sequence).is_some_and(|&op| name(op) == name(first));
    let distances = again.sequences.iter().rev().filter(is_asked).map(|&s| s - asked);
    { distances }.filter(|&d| d > 0).find(|&d| fits(d))
}

/// The name of the operator that made a node.
fn made_by(ops: &OpTable, autograd: &Autograd, node: OpId) -> Option<Sym> {
    autograd.forward_of(node).map(|forward| ops.name[forward.index()])
}
