//! Conversions of tensors to another type, and operators that only hand out memory.

use rustc_hash::FxHashSet;
use xmem_analyzer::Profile;
use xmem_types::{BlockId, OpId, Sym};

/// Operators that only hand out memory: a block made inside belongs to the operator around them.
const FACTORIES: &[&str] = &[
    "aten::empty",
    "aten::empty_strided",
    "aten::empty_like",
    "aten::new_empty",
    "aten::new_empty_strided",
    "aten::resize_",
    "aten::resize_as_",
    "aten::zeros",
    "aten::zeros_like",
    "aten::new_zeros",
    "aten::zero_",
    "aten::set_",
];

/// Conversions of tensors to another type.
pub(crate) struct Conversions<'p> {
    profile: &'p Profile,
    names: FxHashSet<Sym>,
    /// Per position in pre-order: whether the operator is, or runs in, a conversion.
    inside: Vec<bool>,
}

impl<'p> Conversions<'p> {
    pub(crate) fn of(profile: &'p Profile) -> Self {
        let names: FxHashSet<Sym> =
            ["aten::_to_copy", "aten::to"].iter().filter_map(|n| profile.symbol(n)).collect();
        let mut inside = vec![false; profile.op_count()];
        let mut done = 0;
        for &op in profile.tree.preorder() {
            let all = profile.tree.positions(op);
            if all.start >= done && names.contains(&profile.op_symbol(op)) {
                done = all.end;
                inside[all].fill(true);
            }
        }
        Self { profile, names, inside }
    }

    /// The operator within which a block was made by a conversion and is gone again. `op` is the
    /// innermost operator at the block's allocation.
    pub(crate) fn around(&self, block: BlockId, op: OpId) -> Option<OpId> {
        let profile = self.profile;
        if !self.inside[profile.tree.positions(op).start] {
            return None;
        }
        let mut around = profile.tree.path(op).skip_while(|&o| {
            let name = profile.op_symbol(o);
            self.names.contains(&name) || FACTORIES.contains(&profile.text(name))
        });
        let around = around.next().filter(|&o| !profile.is_annotation(o))?;
        let gone = profile.block(block).free_time.is_some_and(|f| f <= profile.op_end(around));
        gone.then_some(around)
    }
}

/// The operators that blocks belong to.
pub(crate) struct Owners<'p> {
    profile: &'p Profile,
    factories: FxHashSet<Sym>,
}

impl<'p> Owners<'p> {
    pub(crate) fn of(profile: &'p Profile) -> Self {
        let factories = FACTORIES.iter().filter_map(|n| profile.symbol(n)).collect();
        Self { profile, factories }
    }

    /// The innermost operator around a block's allocation that does more than hand out memory.
    pub(crate) fn owner(&self, block: BlockId) -> Option<OpId> {
        let Self { profile, factories } = self;
        let op = profile.block(block).op?;
        let owner = profile.tree.path(op).find(|&o| !factories.contains(&profile.op_symbol(o)))?;
        (!profile.is_annotation(owner)).then_some(owner)
    }
}
