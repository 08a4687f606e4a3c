//! Workspaces of cuBLAS and cublasLt.

use crate::cell;
use crate::draft::{Addition, Draft, Position};
use crate::rules::name;
use crate::target::Target;
use xmem_analyzer::{Arguments, DType, Role};
use xmem_profiles::ComputeCapability;
use xmem_types::{Bytes, KIB, MIB, OpId, TorchVersion};

/// Operators that take a cuBLAS handle.
pub(crate) const PRODUCTS: &[&str] = &[
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::addbmm",
    "aten::mv",
    "aten::addmv",
    "aten::dot",
    "aten::vdot",
    "aten::_addmm_activation",
];

/// Size of the cuBLAS workspace per handle and stream
/// (aten/src/ATen/cuda/CublasHandlePool.cpp, `getChosenWorkspaceSize`: `:4096:2:16:8`, on Hopper
/// `:4096:8`; on Blackwell as on Hopper since 2.12).
pub(crate) fn cublas_workspace(capability: ComputeCapability, torch: TorchVersion) -> Bytes {
    let large = Bytes(4096 * KIB * 8);
    match capability.major {
        9 => large,
        10.. if torch >= TorchVersion::new(2, 12) => large,
        _ => Bytes(4096 * KIB * 2 + 16 * KIB * 8),
    }
}

/// The size that a value of `CUBLAS_WORKSPACE_CONFIG` asks for: the sum over all `:KiB:count` in it;
/// none if there is none, for which PyTorch takes its default with a warning
/// (aten/src/ATen/cuda/CublasHandlePool.cpp, `parseChosenWorkspaceSize`).
///
/// ```
/// use xmem_orchestrator::parse_cublas_workspace_config as parse;
/// use xmem_types::Bytes;
///
/// assert_eq!(parse(":4096:2:16:8"), Some(Bytes(8_519_680)));
/// assert_eq!(parse(":0:0"), Some(Bytes::ZERO));
/// assert_eq!(parse("4096"), None);
/// ```
#[must_use]
pub fn parse_cublas_workspace_config(value: &str) -> Option<Bytes> {
    let mut parts = value.split(':').skip(1);
    let mut total = None;
    while let (Some(size), Some(count)) = (parts.next(), parts.next()) {
        let (Ok(size), Ok(count)) = (size.parse::<u32>(), count.parse::<u32>()) else { break };
        let pair = (u64::from(size) * KIB).saturating_mul(u64::from(count));
        let sum: u64 = total.map_or(0, Bytes::get);
        total = Some(Bytes(sum.saturating_add(pair)));
    }
    total
}

/// Size of the cublasLt workspace (`CUBLASLT_WORKSPACE_SIZE`, 1024 KiB).
const CUBLASLT: Bytes = Bytes(MIB);

/// How long a workspace lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Once per thread, for ever.
    Cached,
    /// Per call.
    Call,
}

fn cublas_life(torch: TorchVersion) -> Life {
    if torch >= TorchVersion::new(2, 15) { Life::Call } else { Life::Cached }
}

/// Where cublasLt's workspace comes from, and for how long
/// (aten/src/ATen/cuda/CUDABlas.cpp, `gemm_and_bias`). Recorded with PyTorch 2.6, 2.8, 2.9, 2.11 to
/// 2.15, CUDA builds, kernels stubbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LtWorkspace {
    Own(Life),
    /// It is cuBLAS's (`TORCH_CUBLASLT_UNIFIED_WORKSPACE`).
    Shared,
}

fn cublaslt_workspace(torch: TorchVersion) -> LtWorkspace {
    match torch {
        t if t >= TorchVersion::new(2, 15) => LtWorkspace::Own(Life::Call),
        t if t >= TorchVersion::new(2, 12) => LtWorkspace::Shared,
        t if t >= TorchVersion::new(2, 9) => LtWorkspace::Own(Life::Cached),
        _ => LtWorkspace::Own(Life::Call),
    }
}

/// Which workspaces exist already: per thread that runs kernels, forward and autograd.
#[derive(Default)]
pub(crate) struct Workspaces {
    cublas: [bool; 2],
    cublaslt: [bool; 2],
}

/// A matrix product: allocates what its thread has not got yet.
pub(crate) fn product(
    draft: &mut Draft<'_>,
    target: &Target,
    have: &mut Workspaces,
    op: OpId,
    in_backward: bool,
) {
    let enabled = |rule: &str| !target.disabled.contains(rule);
    let thread = usize::from(in_backward);
    let default = || cublas_workspace(target.device.compute_capability, target.torch);
    let size = target.cublas_workspace.unwrap_or_else(default);
    let life = cublas_life(target.torch);
    let lt = (draft.profile.op_name(op) == "aten::addmm"
        && has_epilogue(draft.profile.arguments(op))
        && !cell::is_within(draft.profile, op))
    .then(|| cublaslt_workspace(target.torch));
    // A workspace of the call is that of the library that runs it; cached ones come with the
    // handle, which either library asks for.
    let other = life == Life::Call && matches!(lt, Some(LtWorkspace::Own(_)));
    if enabled(name::CUBLAS)
        && !other
        && (life == Life::Call || !std::mem::replace(&mut have.cublas[thread], true))
    {
        workspace(draft, size, life, op, name::CUBLAS);
    }
    let Some(LtWorkspace::Own(life)) = lt.filter(|_| enabled(name::CUBLASLT)) else { return };
    if life == Life::Call || !std::mem::replace(&mut have.cublaslt[thread], true) {
        // Never more than cuBLAS's: recorded with 2.11, `:16:8` and `:0:0`.
        workspace(draft, CUBLASLT.min(size), life, op, name::CUBLASLT);
    }
}

/// Whether `addmm` runs as one cublasLt call with the bias in its epilogue: a 1-dimensional bias
/// as long as the result is wide, and a second matrix with more than one row and column.
fn has_epilogue(arguments: &Arguments) -> bool {
    let (Some(bias), Some(right)) = (arguments.tensor(0), arguments.tensor(2)) else {
        return false;
    };
    let float = matches!(bias.dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    float
        && bias.dims.len() == 1
        && right.dims.len() == 2
        && bias.dims[0] == right.dims[1]
        && right.dims.iter().all(|&d| d > 1)
}

fn workspace(draft: &mut Draft<'_>, size: Bytes, life: Life, op: OpId, rule: &'static str) {
    let output = draft.blocks_in(op).into_iter().find(|&i| draft.escapes(i, op));
    let base = match output {
        Some(i) => draft.items[i].alloc,
        None => Position::start(draft.profile.op_start(op)),
    };
    let alloc = draft.after_position(base);
    let free = (life == Life::Call).then(|| draft.after_position(base));
    draft.add(Addition { size, alloc, free, role: Role::Workspace, op }, rule);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_size_follows_architecture_and_version() {
        let v = |minor| TorchVersion::new(2, minor);
        let cc = |major, minor| ComputeCapability { major, minor };
        for (capability, torch, bytes) in [
            (cc(8, 6), v(11), 8_519_680),
            (cc(7, 5), v(6), 8_519_680),
            (cc(9, 0), v(6), 33_554_432),
            (cc(10, 0), v(11), 8_519_680),
            (cc(10, 0), v(12), 33_554_432),
        ] {
            assert_eq!(cublas_workspace(capability, torch), Bytes(bytes), "{capability:?} {torch}");
        }
    }

    #[test]
    fn the_workspace_asked_for_is_the_sum_of_its_pairs() {
        for (value, bytes) in [
            (":4096:8", Some(33_554_432)),
            (":16:8", Some(131_072)),
            (":4096:2:16:8:", Some(8_519_680)),
            (":16:8:x:1", Some(131_072)),
            ("", None),
            (":", None),
            (":16", None),
            (":-1:2", None),
        ] {
            assert_eq!(parse_cublas_workspace_config(value), bytes.map(Bytes), "{value}");
        }
    }

    #[test]
    fn cublaslt_workspace_is_cached_from_2_9_and_shared_from_2_12_to_2_14() {
        use LtWorkspace::{Own, Shared};
        for (minor, expected) in [
            (8, Own(Life::Call)),
            (9, Own(Life::Cached)),
            (11, Own(Life::Cached)),
            (12, Shared),
            (14, Shared),
            (15, Own(Life::Call)),
        ] {
            assert_eq!(cublaslt_workspace(TorchVersion::new(2, minor)), expected, "2.{minor}");
        }
    }
}
