//! General rules: what is host memory, and what is scratch of a CPU kernel.

use crate::coverage;
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

/// Operators that are the same code on every device: what they hold themselves is no scratch of a CPU
/// kernel (aten/src/ATen/native/Loss.cpp, Im2Col.cpp; recorded with PyTorch 2.11's CUDA build, kernels
/// stubbed).
const COMPOSITES: &[&str] = &[
    "aten::abs",
    "aten::binary_cross_entropy_with_logits",
    "aten::cosine_embedding_loss",
    "aten::hinge_embedding_loss",
    "aten::huber_loss",
    "aten::im2col",
];

/// Operators on elements whose operands the CPU converts to a common type first, in memory; CUDA's
/// kernels convert as they read (aten/src/ATen/TensorIterator.cpp,
/// `promote_inputs_to_common_dtype`).
const PROMOTING: &[&str] = &[
    "aten::add",
    "aten::add_",
    "aten::atan2",
    "aten::bitwise_and",
    "aten::bitwise_or",
    "aten::bitwise_xor",
    "aten::div",
    "aten::div_",
    "aten::eq",
    "aten::fmod",
    "aten::ge",
    "aten::gt",
    "aten::le",
    "aten::lt",
    "aten::maximum",
    "aten::minimum",
    "aten::mul",
    "aten::mul_",
    "aten::ne",
    "aten::pow",
    "aten::remainder",
    "aten::sub",
    "aten::sub_",
];

/// The state of the CPU's random numbers, as `torch.get_rng_state` returns it: checkpointing keeps
/// one for each segment, on the host (aten/src/ATen/CPUGeneratorImpl.cpp, `CPUGeneratorImplState`).
const GENERATOR_STATE: u64 = 5056;

/// Bytes up to which a block can be a wrapped number.
pub(crate) const SCALAR: u64 = 16;

/// Leaves out what never reaches the GPU.
pub(crate) fn host_only(draft: &mut Draft<'_>) {
    for i in 0..draft.profile.blocks.len() {
        let block = &draft.profile.blocks[i];
        let by_python = || block.op.is_none_or(|o| !draft.profile.op_name(o).starts_with("aten::"));
        let generator = block.size.get() == GENERATOR_STATE && by_python();
        if block.residency == Residency::HostOnly || generator {
            draft.drop_block(i, name::HOST_ONLY);
        }
    }
}

/// Leaves out numbers that Python wraps as tensors.
pub(crate) fn host_scalars(draft: &mut Draft<'_>, casts: &Casts<'_>) {
    for i in 0..draft.profile.blocks.len() {
        let block = &draft.profile.blocks[i];
        if block.size.get() > SCALAR || block.residency == Residency::HostOnly {
            continue;
        }
        let host = match block.op {
            None => block.phase != Phase::Init,
            Some(op) => casts.around(i, op).is_some(),
        };
        if host {
            draft.drop_block(i, name::HOST_SCALARS);
        }
    }
}

/// Leaves out operands that the CPU converts before an operator on elements.
pub(crate) fn promoted_operands(draft: &mut Draft<'_>, casts: &Casts<'_>) {
    for i in 0..draft.profile.blocks.len() {
        let block = &draft.profile.blocks[i];
        let Some(op) = block.op.filter(|_| draft.live(i)) else { continue };
        if block.size.get() <= SCALAR {
            continue;
        }
        let converts = casts.around(i, op);
        if converts.is_some_and(|o| PROMOTING.contains(&draft.profile.op_name(o))) {
            draft.drop_block(i, name::PROMOTED);
        }
    }
}

/// Conversions of tensors to another type.
pub(crate) struct Casts<'a> {
    profile: &'a Profile,
    names: FxHashSet<Sym>,
    /// Per position in pre-order: whether the operator is, or runs in, a conversion.
    inside: Vec<bool>,
}

impl<'a> Casts<'a> {
    pub(crate) fn of(profile: &'a Profile) -> Self {
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

    /// The operator within which a block was made by a conversion and is gone again.
    fn around(&self, index: usize, op: OpId) -> Option<OpId> {
        let profile = self.profile;
        if !self.inside[profile.tree.positions(op).start] {
            return None;
        }
        let mut around = profile.tree.path(op).skip_while(|&o| {
            let name = profile.op_symbol(o);
            self.names.contains(&name) || FACTORIES.contains(&profile.text(name))
        });
        let around = around.next().filter(|&o| !profile.is_annotation(o))?;
        let gone = profile.blocks[index].free_time.is_some_and(|f| f <= profile.op_end(around));
        gone.then_some(around)
    }
}

/// Leaves out what is born and gone within one leaf operator and no other rule has settled.
pub(crate) fn leaf_scratch(draft: &mut Draft<'_>) {
    let owners = Owners::of(draft.profile);
    for i in 0..draft.profile.blocks.len() {
        if draft.items[i].settled || !draft.live(i) {
            continue;
        }
        let Some(owner) = owners.owner(i) else { continue };
        let name = draft.profile.op_name(owner);
        if COMPOSITES.contains(&name) || coverage::is_autograd(name) {
            continue;
        }
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
