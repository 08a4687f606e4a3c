//! General rules: what is host memory, and what is scratch of a CPU kernel.

use crate::draft::Draft;
use crate::rules::name;
use rustc_hash::FxHashSet;
use xmem_analyzer::{Phase, Profile, Residency};
use xmem_types::{OpId, Sym};

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

/// Bytes up to which a block can be a wrapped number.
pub(crate) const SCALAR: u64 = 16;

/// Leaves out what never reaches the GPU.
pub(crate) fn host_only(draft: &mut Draft<'_>) {
    for i in 0..draft.profile.blocks.len() {
        if draft.profile.blocks[i].residency == Residency::HostOnly {
            draft.drop_block(i, name::HOST_ONLY);
        }
    }
}

/// Leaves out numbers that Python wraps as tensors.
pub(crate) fn host_scalars(draft: &mut Draft<'_>) {
    let casts: FxHashSet<Sym> =
        ["aten::_to_copy", "aten::to"].iter().filter_map(|n| draft.profile.symbol(n)).collect();
    for i in 0..draft.profile.blocks.len() {
        let block = &draft.profile.blocks[i];
        if block.size.get() > SCALAR || block.residency == Residency::HostOnly {
            continue;
        }
        let host = match block.op {
            None => block.phase != Phase::Init,
            Some(op) => is_wrapped_number(draft.profile, &casts, i, op),
        };
        if host {
            draft.drop_block(i, name::HOST_SCALARS);
        }
    }
}

/// A number converted to the other operand's type within a binary operator.
fn is_wrapped_number(profile: &Profile, casts: &FxHashSet<Sym>, index: usize, op: OpId) -> bool {
    let mut around = profile.tree.path(op).skip_while(|&o| {
        let name = profile.op_symbol(o);
        casts.contains(&name) || FACTORIES.contains(&profile.text(name))
    });
    let in_cast = profile.tree.path(op).any(|o| casts.contains(&profile.op_symbol(o)));
    let Some(binary) = around.next().filter(|_| in_cast) else { return false };
    !profile.is_annotation(binary)
        && profile.blocks[index].free_time.is_some_and(|f| f <= profile.op_end(binary))
}

/// Leaves out what is born and gone within one leaf operator and no other rule has settled.
pub(crate) fn leaf_scratch(draft: &mut Draft<'_>) {
    let owners = Owners::of(draft.profile);
    for i in 0..draft.profile.blocks.len() {
        if draft.items[i].settled || !draft.live(i) {
            continue;
        }
        let Some(owner) = owners.owner(i) else { continue };
        if !draft.escapes(i, owner) {
            draft.drop_block(i, name::LEAF_SCRATCH);
        }
    }
}

/// Which operators blocks belong to.
pub(crate) struct Owners<'a> {
    profile: &'a Profile,
    factories: FxHashSet<Sym>,
}

impl<'a> Owners<'a> {
    pub(crate) fn of(profile: &'a Profile) -> Self {
        let factories = FACTORIES.iter().filter_map(|n| profile.symbol(n)).collect();
        Self { profile, factories }
    }

    /// The innermost operator around a block's allocation that does more than hand out memory.
    pub(crate) fn owner(&self, block: usize) -> Option<OpId> {
        let Self { profile, factories } = self;
        let op = profile.blocks[block].op?;
        let owner = profile.tree.path(op).find(|&o| !factories.contains(&profile.op_symbol(o)))?;
        (!profile.is_annotation(owner)).then_some(owner)
    }
}
