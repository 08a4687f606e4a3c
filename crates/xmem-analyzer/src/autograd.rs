//! Links between backward nodes and the forward operators that made them.

use rustc_hash::FxHashMap;
use xmem_trace::{OpKind, OpTable};
use xmem_types::{Interner, OpId};

/// The prefix of the engine's annotation around each backward node.
pub(crate) const EVALUATE: &str = "autograd::engine::evaluate_function: ";

/// Per operator: the forward operator of a backward node.
#[derive(Clone, Debug, Default)]
pub struct Autograd {
    forward_of: FxHashMap<OpId, OpId>,
}

impl Autograd {
    /// Links by sequence number: a backward node carries the number of the operator that made it.
    /// Several nested operators carry the same number; the last to start before the node is the
    /// one that made it (as Kineto's own forward/backward links have it).
    pub(crate) fn build(ops: &OpTable, strings: &Interner) -> Self {
        let is_node: Vec<bool> =
            strings.iter().map(|(_, name)| name.starts_with(EVALUATE)).collect();
        let mut order: Vec<OpId> = (0..ops.len())
            .map(OpId::new)
            .filter(|o| ops.sequence[o.index()] >= 0 && ops.kind[o.index()] == OpKind::Operator)
            .collect();
        order.sort_unstable_by_key(|o| (ops.start[o.index()], *o));
        let mut latest: FxHashMap<i64, OpId> = FxHashMap::default();
        let mut forward_of = FxHashMap::default();
        for op in order {
            let i = op.index();
            if is_node[ops.name[i].index()] {
                if let Some(&forward) = latest.get(&ops.sequence[i]) {
                    forward_of.insert(op, forward);
                }
            } else if ops.forward_thread[i] == 0 {
                latest.insert(ops.sequence[i], op);
            }
        }
        Self { forward_of }
    }

    /// The forward operator that made a backward node (an `evaluate_function` operator).
    #[must_use]
    pub fn forward_of(&self, node: OpId) -> Option<OpId> {
        self.forward_of.get(&node).copied()
    }

    /// Every (backward node, forward operator) pair, in no particular order.
    pub fn pairs(&self) -> impl Iterator<Item = (OpId, OpId)> + '_ {
        self.forward_of.iter().map(|(&b, &f)| (b, f))
    }
}
