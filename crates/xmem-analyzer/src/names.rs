//! The meaning of operator and annotation names, looked up once per distinct name.

use crate::distributed::FSDP;
use xmem_types::{Interner, Sym};

/// The prefix of the engine's annotation around each backward node
/// (torch/csrc/autograd/engine.cpp, `Engine::evaluate_function`).
const EVALUATE: &str = "autograd::engine::evaluate_function: ";

const ACCUMULATE: &str = "torch::autograd::AccumulateGrad";

/// A name with a meaning of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum NameKind {
    /// Nothing special.
    Plain,
    /// The engine's frame around a backward node.
    Node,
    /// The engine's frame around the accumulation of a leaf's gradient.
    AccumulateNode,
    /// `torch::autograd::AccumulateGrad` itself.
    Accumulate,
    /// `Optimizer.step#…` (torch/optim/optimizer.py, `profile_hook_step`).
    Step,
    /// `Optimizer.zero_grad#…` (the same file).
    ZeroGrad,
    /// `enumerate(DataLoader)#…` (torch/utils/data/dataloader.py).
    Data,
    /// `ProfilerStep#N` (torch/profiler/profiler.py).
    ProfilerStep,
    /// `aten::detach`: also how a tensor becomes an `nn.Parameter`
    /// (torch/csrc/autograd/python_variable.cpp, `THPVariable_make_subclass`).
    Detach,
    /// Asked by `Module._apply` for each parameter it converted (torch/nn/modules/module.py).
    ShallowCopy,
    /// The end of `torch.tensor(value)` (torch/csrc/utils/tensor_new.cpp).
    LiftFresh,
    /// The seed of a backward pass (torch/autograd/__init__.py, `_make_grads`).
    OnesLike,
    /// A value read by the host: `item()`, `bool(t)`.
    HostRead,
    /// Any operator that writes one of its inputs.
    InPlace,
    /// The span in which FSDP2 makes the parameters that it gathered, out of the buffer of the collective
    /// (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, `FSDPParamGroup.wait_for_unshard`).
    FsdpGathered,
    /// Another span of FSDP2.
    Fsdp,
    /// A span that a user or a library names; no operator is called like this. Formats before
    /// PyTorch 1.12 give such spans the category of operators.
    Frame,
}

impl NameKind {
    /// Returns whether it is a span of FSDP2.
    pub(crate) const fn is_of_fsdp(self) -> bool {
        matches!(self, Self::FsdpGathered | Self::Fsdp)
    }
}

/// The kind of every symbol that the trace had when it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    kinds: Vec<NameKind>,
    has_fsdp: bool,
}

impl Names {
    pub(crate) fn build(strings: &Interner) -> Self {
        let mut kinds: Vec<NameKind> = strings.iter().map(|(_, text)| kind(text)).collect();
        if !kinds.contains(&NameKind::Node) {
            // Before the engine framed nodes (PyTorch 1.9), they stand alone.
            for (sym, text) in strings.iter() {
                let bare = text.trim_end_matches(|c: char| c.is_ascii_digit());
                if text == ACCUMULATE {
                    kinds[sym.index()] = NameKind::AccumulateNode;
                } else if bare.ends_with("Backward") && !text.contains([':', ' ', '(']) {
                    kinds[sym.index()] = NameKind::Node;
                }
            }
        }
        let has_fsdp = kinds.iter().any(|kind| kind.is_of_fsdp());
        Self { kinds, has_fsdp }
    }

    pub(crate) fn kind(&self, name: Sym) -> NameKind {
        self.kinds.get(name.index()).copied().unwrap_or(NameKind::Plain)
    }

    /// Returns whether FSDP2 names any span.
    pub(crate) fn has_fsdp(&self) -> bool {
        self.has_fsdp
    }

    /// Returns whether the name is that of a span rather than of an operator.
    pub(crate) fn is_span(&self, name: Sym) -> bool {
        matches!(
            self.kind(name),
            NameKind::Step
                | NameKind::ZeroGrad
                | NameKind::Data
                | NameKind::ProfilerStep
                | NameKind::FsdpGathered
                | NameKind::Fsdp
                | NameKind::Frame
        )
    }

    /// Returns whether the name is the engine's frame around a node of any kind.
    pub(crate) fn is_node(&self, name: Sym) -> bool {
        matches!(self.kind(name), NameKind::Node | NameKind::AccumulateNode)
    }
}

fn kind(text: &str) -> NameKind {
    if let Some(node) = text.strip_prefix(EVALUATE) {
        return match node {
            ACCUMULATE => NameKind::AccumulateNode,
            _ => NameKind::Node,
        };
    }
    match text {
        ACCUMULATE => NameKind::Accumulate,
        "aten::detach" => NameKind::Detach,
        "aten::_has_compatible_shallow_copy_type" => NameKind::ShallowCopy,
        "aten::lift_fresh" => NameKind::LiftFresh,
        "aten::ones_like" => NameKind::OnesLike,
        "aten::item" | "aten::_local_scalar_dense" | "aten::is_nonzero" => NameKind::HostRead,
        _ if text.starts_with("Optimizer.step#") => NameKind::Step,
        _ if text.starts_with("Optimizer.zero_grad#") => NameKind::ZeroGrad,
        _ if text.starts_with("enumerate(DataLoader)#")
            || text.starts_with("enumerate(DataPipe)#") =>
        {
            NameKind::Data
        }
        _ if text.starts_with("ProfilerStep#") => NameKind::ProfilerStep,
        _ if text.starts_with("FSDP::all_gather_copy_out") => NameKind::FsdpGathered,
        _ if text.starts_with(FSDP) => NameKind::Fsdp,
        _ if text.starts_with("aten::")
            && text.ends_with('_')
            && !matches!(text, "aten::detach_" | "aten::requires_grad_") =>
        {
            NameKind::InPlace
        }
        _ if text.contains(['#', ' ']) => NameKind::Frame,
        _ => NameKind::Plain,
    }
}
