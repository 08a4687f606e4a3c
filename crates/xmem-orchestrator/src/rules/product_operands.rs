//! A matrix product copies an operand whose layout cuBLAS cannot read: one that is neither dense along its
//! rows nor along its columns, such as the expanded gradient of a sum or a slice with a step. An expanded
//! batch dimension is read as it is. The copy has the full size, and lives as long as the call. What the CPU's
//! kernel copies instead is left out.

use super::cublas_workspace;
use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::cuda::layout::is_contiguous;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::Addition;
use crate::rule::Rule;
use xmem_analyzer::{Role, TensorArg};
use xmem_types::{BlockId, Bytes};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "product-operands",
        summary: "a matrix product copies an operand whose layout cuBLAS cannot read, whatever the CPU copies",
        source: "aten/src/ATen/native/cuda/Blas.cpp `prepare_matrix_for_cublas`, `prepare_batch_matrix_for_cublas`, `addmv_out_cuda`",
        operators: &[],
        covers: &[],
    },
    applies: Applies::Through(&cublas_workspace::RULE),
};

/// Replaces the copies that the CPU makes within a product by those that CUDA makes.
pub(super) fn copy(call: &mut Call<'_, '_, '_>) {
    if call.calls_itself() || !call.enables(&RULE) {
        return;
    }
    let copies = copies(call);
    let (op, profile) = (call.op, call.profile());
    let blocks = call.blocks();
    let mut edits = call.edits.credit(&RULE);
    let (outputs, scratch): (Vec<BlockId>, Vec<BlockId>) =
        blocks.into_iter().partition(|&block| edits.escapes(block, op));
    // Scratch of the operator itself is for `leaf-scratch`.
    for block in scratch.into_iter().filter(|&block| profile.block(block).op != Some(op)) {
        edits.drop_block(block);
    }
    let base = outputs.first().map_or(edits.before(op), |&output| edits.item(output).alloc());
    let end = edits.after_op(op);
    let places: Vec<_> = copies.iter().map(|_| edits.next(base)).collect();
    for (size, alloc) in copies.into_iter().zip(places).rev() {
        let free = edits.next(end);
        edits.add(Addition { size, alloc, free, role: Role::Workspace, op });
    }
}

/// The sizes of the copies that CUDA makes of a product's operands, in order.
fn copies(call: &Call<'_, '_, '_>) -> Vec<Bytes> {
    let tensor = |at| call.arguments().tensor(at);
    let first = match call.name() {
        "aten::mm" | "aten::bmm" | "aten::mv" => 0,
        "aten::addmm" | "aten::baddbmm" | "aten::addmv" | "aten::_addmm_activation" => 1,
        _ => return Vec::new(),
    };
    let (Some(left), Some(right)) = (tensor(first), tensor(first + 1)) else { return Vec::new() };
    // The result is row by row, and cuBLAS column by column: it computes the transposed product.
    let unread = match right.dims.len() {
        1 => [(left, !is_read(left)), (right, right.strides == [0] && right.dims[0] > 1)],
        _ if right.dims.len() == 3 && right.dims[2] == 1 => {
            [(left, !is_read(left)), (right, !is_read(right))]
        }
        _ => [(right, !is_read(right)), (left, !is_read(left))],
    };
    unread.into_iter().filter(|(_, unread)| *unread).map(|(t, _)| Count::bytes(t).into()).collect()
}

/// Returns whether cuBLAS reads the matrix, or each matrix of a batch, where it lies; assumed where strides
/// were not recorded.
fn is_read(matrix: &TensorArg) -> bool {
    let (&[.., rows, columns], &[.., row, column]) =
        (matrix.dims.as_slice(), matrix.strides.as_slice())
    else {
        return true;
    };
    let dense = |step: i64, leading: i64, extent: u64| {
        step == 1 && u64::try_from(leading).is_ok_and(|leading| leading >= extent.max(1))
    };
    matrix.numel() == 0
        || dense(column, row, columns)
        || dense(row, column, rows)
        || is_contiguous(matrix)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testing::{Case, Script, lowered, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "an expanded gradient is copied as a whole, not matrix by matrix",
                script: product("aten::bmm", "f32[2,8,4] f32[2,4,16]:0,0,0", 2),
                target: target(),
                requests: expect![[r#"
                    an expanded gradient is copied as a whole, not matrix by matrix
                        + y 1024 temporary
                    on  + product-operands#1 512 workspace
                        + cublas-workspace#1 8519680 workspace
                    on  - product-operands#1
                    off + copy 256 temporary
                    off - copy
                    off + copy 256 temporary
                    off - copy
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a bias in the epilogue: the copy comes before cublasLt's workspace",
                script: product("aten::addmm", "f32[16] f32[16,4]:0,1 f32[4,16] 1 1", 0),
                target: target(),
                requests: expect![[r#"
                    a bias in the epilogue: the copy comes before cublasLt's workspace
                        + y 1024 temporary
                    on  + product-operands#1 256 workspace
                        + cublas-workspace#1 8519680 workspace
                        + cublaslt-workspace#1 1048576 workspace
                    on  - product-operands#1
                        - y
                "#]],
            },
        ]
    }

    /// One product of 1,024 bytes, for which the CPU copies so many matrices.
    fn product(name: &str, arguments: &str, copies: u32) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op(name, arguments, |t| {
                t.alloc("y", 1024);
                for _ in 0..copies {
                    t.makes("aten::clone", "f32[4,16]:0,0 -", "copy", 256);
                    t.free("copy");
                }
            });
            t.free("y");
        });
        t
    }

    /// Recorded with PyTorch 2.11's CUDA build, kernels stubbed.
    #[test]
    fn operands_that_cublas_cannot_read_are_copied() {
        for (name, arguments, expected) in [
            ("aten::bmm", "f32[8,32,64] f32[8,64,48]", &[][..]),
            ("aten::bmm", "f32[8,32,64]:0,64,1 f32[8,64,48]:0,48,1", &[]),
            ("aten::bmm", "f32[8,32,64]:64,0,1 f32[8,64,48]", &[65_536]),
            ("aten::bmm", "f32[8,32,64]:32,1,0 f32[8,64,48]", &[65_536]),
            ("aten::bmm", "f32[8,32,64]:2048,1,32 f32[8,64,48]", &[]),
            ("aten::bmm", "f32[8,32,64]:4096,128,2 f32[8,64,48]", &[65_536]),
            ("aten::bmm", "f32[8,32,64]:4096,128,1 f32[8,64,48]", &[]),
            ("aten::bmm", "f32[8,32,64]:1,512,8 f32[8,64,48]", &[65_536]),
            ("aten::bmm", "f32[8,1,64]:64,0,1 f32[8,64,48]", &[]),
            ("aten::bmm", "f32[8,32,1] f32[8,1,48]", &[]),
            ("aten::bmm", "f32[8,32,64] f32[8,64,1]", &[]),
            ("aten::bmm", "f32[8,32,64] f32[8,64,1]:0,0,0", &[2048]),
            ("aten::baddbmm", "f32[8,32,48] f32[8,32,64]:64,0,1 f32[8,64,48]", &[65_536]),
            ("aten::bmm", "f32[8,32,64]:0,0,0 f32[8,64,48]:0,0,0", &[98_304, 65_536]),
            ("aten::mm", "f32[32,64] f32[64,48]", &[]),
            ("aten::mm", "f32[32,64]:0,1 f32[64,48]", &[8192]),
            ("aten::mm", "f32[32,64] f32[64,48]:0,1", &[12_288]),
            ("aten::mm", "f32[32,64]:0,0 f32[64,48]:0,0", &[12_288, 8192]),
            ("aten::addmm", "f32[32,48] f32[32,64]:0,1 f32[64,48] 1 1", &[8192]),
            ("aten::mv", "f32[32,64]:0,1 f32[64]", &[8192]),
            ("aten::mv", "f32[32,64] f32[64]:0", &[256]),
            ("aten::dot", "f32[64] f32[64]:0", &[]),
        ] {
            let (schedule, _) = lowered(&product(name, arguments, 0), &target());
            let copied = schedule.blocks.iter().filter(|b| b.rule.is_some_and(|r| *r == RULE.rule));
            let mut copied: Vec<u64> = copied.map(|b| b.size.get()).collect();
            copied.sort_unstable();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(copied, expected, "{name} {arguments}");
        }
    }
}
