//! A linear layer with bias runs as one cublasLt call with the bias in its epilogue. cublasLt has a separate
//! workspace, which a release of PyTorch takes per call, caches per thread, or shares with cuBLAS.

use super::cublas_workspace::{self, Life};
use crate::frame::call::Call;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::rule::Rule;
use xmem_analyzer::{Arguments, DType};
use xmem_types::{Bytes, MIB, TorchVersion};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "cublaslt-workspace",
        summary: "a linear layer with bias runs through cublasLt, which has a separate workspace",
        source: "aten/src/ATen/native/cuda/Blas.cpp `addmm_out_cuda_impl`; aten/src/ATen/cuda/CUDABlas.cpp `gemm_and_bias`",
        operators: &[],
        covers: &[],
    },
    applies: Applies::Through(&cublas_workspace::RULE),
};

/// The size of the cublasLt workspace (`CUBLASLT_WORKSPACE_SIZE`, 1024 KiB).
pub(super) const SIZE: Bytes = Bytes(MIB);

/// cublasLt's workspace, if a matrix product runs through cublasLt.
pub(super) fn of_product(call: &Call<'_, '_, '_>) -> Option<LtWorkspace> {
    let through = call.name() == "aten::addmm"
        && has_epilogue(call.arguments())
        && !call.runs_without_epilogue();
    through.then(|| of_release(call.target().torch))
}

/// The source of cublasLt's workspace, and its life
/// (aten/src/ATen/cuda/CUDABlas.cpp, `gemm_and_bias`). Recorded with PyTorch 2.6, 2.8, 2.9, 2.11 to
/// 2.15, CUDA builds, kernels stubbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LtWorkspace {
    /// Its own, of [`SIZE`].
    Own(Life),
    /// It is cuBLAS's (`TORCH_CUBLASLT_UNIFIED_WORKSPACE`).
    Shared,
}

fn of_release(torch: TorchVersion) -> LtWorkspace {
    match torch {
        t if t >= TorchVersion::new(2, 15) => LtWorkspace::Own(Life::Call),
        t if t >= TorchVersion::new(2, 12) => LtWorkspace::Shared,
        t if t >= TorchVersion::new(2, 9) => LtWorkspace::Own(Life::Cached),
        _ => LtWorkspace::Own(Life::Call),
    }
}

/// Returns whether `addmm` runs as one cublasLt call with the bias in its epilogue: a 1-dimensional bias
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::cublas_workspace::tests::two_layers;
    use crate::testing::case::on;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

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
            assert_eq!(of_release(TorchVersion::new(2, minor)), expected, "2.{minor}");
        }
    }

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "PyTorch 2.11: one for ever, at the first layer with a bias",
                script: two_layers(),
                target: target(),
                requests: expect![[r#"
                    PyTorch 2.11: one for ever, at the first layer with a bias
                        + w1 4096 parameter model-placement
                        + b1 128 parameter model-placement
                        + w2 4096 parameter model-placement
                        + b2 128 parameter model-placement
                        + h 8192 activation
                        + cublas-workspace#1 8519680 workspace
                    on  + cublaslt-workspace#1 1048576 workspace
                        + y 8192 activation
                        + gh 8192 gradient
                        + cublas-workspace#2 8519680 workspace
                        + gw2 4096 gradient
                        - y
                        + gb2 128 gradient
                        + gx 8192 gradient
                        + gw1 4096 gradient
                        - h
                        + gb1 128 gradient
                        - gh
                        - gx
                        - gw1
                        - gw2
                        - gb1
                        - gb2
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "PyTorch 2.8: one for each call",
                script: two_layers(),
                target: on("rtx3060-12g", 8),
                requests: expect![[r#"
                    PyTorch 2.8: one for each call
                        + w1 4096 parameter model-placement
                        + b1 128 parameter model-placement
                        + w2 4096 parameter model-placement
                        + b2 128 parameter model-placement
                        + h 8192 activation
                        + cublas-workspace#1 8519680 workspace
                    on  + cublaslt-workspace#1 1048576 workspace
                    on  - cublaslt-workspace#1
                        + y 8192 activation
                    on  + cublaslt-workspace#2 1048576 workspace
                    on  - cublaslt-workspace#2
                        + gh 8192 gradient
                        + cublas-workspace#2 8519680 workspace
                        + gw2 4096 gradient
                        - y
                        + gb2 128 gradient
                        + gx 8192 gradient
                        + gw1 4096 gradient
                        - h
                        + gb1 128 gradient
                        - gh
                        - gx
                        - gw1
                        - gw2
                        - gb1
                        - gb2
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "one output: no bias in the epilogue, cuBLAS alone",
                script: narrow_layer(),
                target: target(),
                requests: expect![[r#"
                    one output: no bias in the epilogue, cuBLAS alone
                        + w 128 parameter model-placement
                        + b 4 parameter model-placement
                        + y 256 temporary
                        + cublas-workspace#1 8519680 workspace
                        - y
                "#]],
            },
        ]
    }

    /// A linear layer with one output.
    fn narrow_layer() -> Script {
        let mut t = Script::default();
        t.model(&[("w", &[1, 32]), ("b", &[1])]);
        t.iteration(0, |t| {
            t.op_seq(1, "aten::linear", "f32[64,32] f32[1,32] f32[1]", |t| {
                t.makes_seq(1, "aten::addmm", "f32[1] f32[64,32] f32[32,1]:1,32 1 1", "y", 256);
            });
            t.free("y");
        });
        t
    }
}
