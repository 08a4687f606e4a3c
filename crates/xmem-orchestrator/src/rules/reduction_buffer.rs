//! A reduction that is split over thread blocks takes a global buffer of partial results and semaphores,
//! which live until it returns.

use crate::frame::call::Call;
use crate::frame::cuda::reduce::{self, Buffers, Parallelism};
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::frame::draft::{Addition, Edits};
use crate::rule::Rule;
use xmem_analyzer::{Arguments, DType, Role, TensorArg};
use xmem_types::{BlockId, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "reduction-buffer",
        summary: "a reduction that is split over thread blocks takes a global buffer and semaphores",
        source: "aten/src/ATen/native/cuda/Reduce.cuh `setReduceConfig`, `gpu_reduce_kernel`",
        operators: &[
            "aten::sum",
            "aten::mean",
            "aten::prod",
            "aten::all",
            "aten::any",
            "aten::amax",
            "aten::amin",
            "aten::max",
            "aten::min",
            "aten::argmax",
            "aten::argmin",
            "aten::var",
            "aten::std",
            "aten::var_mean",
            "aten::norm",
            "aten::linalg_vector_norm",
        ],
        covers: &["aten::logsumexp", "aten::nansum"],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    // Without recorded shapes the blocks stay. The CPU's mean is a sum and a division; CUDA's is one
    // kernel, so that the operators inside are not looked at in any case.
    let _as_recorded = split(call);
    Outcome::ReplacedInside
}

fn split(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let input = arguments.tensor(0)?;
    let name = call.name();
    let reduced = reduced_dims(name, arguments, input)?;
    let accumulator =
        if with_positions(name, arguments) { 16 } else { accumulator_bytes(name, input.dtype) };
    if input.dtype.is_half() {
        drop_wide_copies(call);
    }
    // Outputs, and a copy of the input in another type, come before the reduction.
    let made = call.blocks();
    if !made.iter().any(|&block| call.escapes(block)) {
        return None;
    }
    let output = made.into_iter().rfind(|&block| call.edits.live(block))?;
    let device = Parallelism::of(call.target());
    let buffers = reduce::buffers(input, &reduced, accumulator, device)?;
    add(&mut call.edits, buffers, output, call.op);
    Some(())
}

/// The CPU sums 16-bit floats in a 32-bit copy; CUDA's kernel widens them as it reads.
fn drop_wide_copies(call: &mut Call<'_, '_, '_>) {
    let profile = call.profile();
    for block in call.blocks() {
        let copied = profile.block(block).op.is_some_and(|o| {
            profile.tree.path(o).take(3).any(|o| profile.op_name(o) == "aten::_to_copy")
        });
        if copied && !call.escapes(block) {
            call.edits.drop_block(block);
        }
    }
}

/// Adds the buffers of summing `input` over the `reduced` dimensions into the block `output`: for rules
/// whose kernels end with a sum. Nothing is added if this rule is switched off.
pub(super) fn add_sum(
    call: &mut Call<'_, '_, '_>,
    input: &TensorArg,
    reduced: &[bool],
    output: BlockId,
) {
    if !call.enables(&RULE) {
        return;
    }
    let accumulator = accumulator_bytes("aten::sum", input.dtype);
    let device = Parallelism::of(call.target());
    if let Some(buffers) = reduce::buffers(input, reduced, accumulator, device) {
        add(&mut call.edits.credit(&RULE), buffers, output, call.op);
    }
}

/// Partial results, then semaphores; both go when the kernel has been launched.
fn add(edits: &mut Edits<'_, '_>, buffers: Buffers, output: BlockId, op: OpId) {
    let allocs = [edits.after(output), edits.after(output)];
    let frees = [edits.after(output), edits.after(output)];
    let sizes = [buffers.partials, buffers.semaphores];
    for ((size, alloc), free) in sizes.into_iter().zip(allocs).zip(frees) {
        let size = size.into();
        edits.add(Addition { size, alloc, free, role: Role::Workspace, op });
    }
}

/// Per dimension of the input, whether it is reduced; `None` if that was not recorded.
fn reduced_dims(name: &str, arguments: &Arguments, input: &TensorArg) -> Option<Vec<bool>> {
    let rank = input.dims.len();
    let position = match name {
        "aten::norm" | "aten::linalg_vector_norm" => 2,
        _ => 1,
    };
    let mut reduced = vec![false; rank];
    match arguments.ints(position) {
        Some(dims) if !dims.is_empty() => {
            for d in dims {
                let d = if d < 0 { d.checked_add(rank as i64)? } else { d };
                *reduced.get_mut(usize::try_from(d).ok()?)? = true;
            }
        }
        _ => reduced.fill(true),
    }
    Some(reduced)
}

/// `max` and `min` of a dimension carry each value's position along.
fn with_positions(name: &str, arguments: &Arguments) -> bool {
    matches!(name, "aten::max" | "aten::min") && arguments.value(1).is_some()
}

/// Bytes of one accumulator: sums of 16- and 32-bit floats accumulate in 32 bits, indices travel
/// with their values, variances keep Welford's four numbers.
fn accumulator_bytes(name: &str, dtype: DType) -> u64 {
    match name {
        "aten::argmax" | "aten::argmin" => 16,
        "aten::var" | "aten::std" | "aten::var_mean" => 16,
        "aten::all" | "aten::any" => 1,
        "aten::max" | "aten::min" | "aten::amax" | "aten::amin" => dtype.size(),
        _ => match dtype {
            DType::F64 | DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::Bool => 8,
            _ => 4,
        },
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::case::on;
    use crate::testing::{Case, Script, lowered, target};
    use expect_test::expect;
    use std::fmt::Write as _;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "column sums of 4096 x 1024",
                script: reduction("aten::sum", "f32[4096,1024] (0) False -", 4096),
                target: target(),
                requests: expect![[r#"
                    column sums of 4096 x 1024
                        + y 4096 activation
                    on  + reduction-buffer#1 22020096 workspace
                    on  + reduction-buffer#2 32 workspace
                    on  - reduction-buffer#1
                    on  - reduction-buffer#2
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "column sums of 64 x 32: one block does it",
                script: reduction("aten::sum", "f32[64,32] (0) False -", 128),
                target: target(),
                requests: expect![[r#"
                    column sums of 64 x 32: one block does it
                        + y 128 activation
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "bfloat16: the 32-bit copy that the CPU sums goes",
                script: sum_of_a_copy(),
                target: target(),
                requests: expect![[r#"
                    bfloat16: the 32-bit copy that the CPU sums goes
                    off + copy 8192 temporary
                        + y 64 activation
                    off - copy
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "mean: a sum and a division on the CPU, one kernel with one buffer on CUDA",
                script: mean(),
                target: target(),
                requests: expect![[r#"
                    mean: a sum and a division on the CPU, one kernel with one buffer on CUDA
                        + y 4096 activation
                    on  + reduction-buffer#1 22020096 workspace
                    on  + reduction-buffer#2 32 workspace
                    on  - reduction-buffer#1
                    on  - reduction-buffer#2
                        - y
                "#]],
            },
        ]
    }

    fn sum_of_a_copy() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, "aten::sum", "bf16[64,32] (0) False -", |t| {
                t.op("aten::to", "bf16[64,32] 6 False False -", |t| {
                    t.op("aten::_to_copy", "bf16[64,32] 6 - - - False -", |t| {
                        t.makes("aten::empty_strided", "(64,32) (32,1) 6 0 - False", "copy", 8192);
                    });
                });
                t.alloc("y", 64);
                t.free("copy");
            });
            t.node(1, "SumBackward0", |_| ());
            t.free("y");
        });
        t
    }

    fn mean() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, "aten::mean", "f32[4096,1024] (0) False -", |t| {
                t.makes("aten::sum", "f32[4096,1024] (0) False -", "y", 4096);
                t.op("aten::div_", "f32[1024] 4096", |_| ());
            });
            t.node(1, "MeanBackward1", |_| ());
            t.free("y");
        });
        t
    }

    fn reduction(operator: &str, arguments: &str, bytes: u64) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.makes_seq(1, operator, arguments, "y", bytes);
            t.node(1, "SumBackward0", |_| ());
            t.free("y");
        });
        t
    }

    /// Buffer and semaphores of `setReduceConfig` (aten/src/ATen/native/cuda/Reduce.cuh). The first two
    /// lines and the full sum were recorded with PyTorch 2.11's CUDA build, kernels stubbed.
    #[test]
    fn buffers_by_shape_type_and_device() {
        let mut table = String::new();
        for (device, operator, arguments, bytes) in [
            ("rtx3060-12g", "aten::sum", "f32[4096,1024] (0) False -", 4096),
            ("a100-40g", "aten::sum", "f32[4096,1024] (0) False -", 4096),
            ("rtx3060-12g", "aten::sum", "f32[1000000] -", 4),
            ("rtx3060-12g", "aten::sum", "f64[1000000] -", 8),
            ("rtx3060-12g", "aten::mean", "f32[4096,1024] (-2) True -", 4096),
            ("rtx3060-12g", "aten::sum", "bf16[4096,1024] (0) False -", 2048),
            ("rtx3060-12g", "aten::sum", "f32[4096,1024]:1,4096 (1) False -", 16384),
            ("rtx3060-12g", "aten::sum", "f32[4096,1024] (1) False -", 16384),
            ("rtx3060-12g", "aten::sum", "f32[8,512,1024] (0,1) False -", 4096),
            ("rtx3060-12g", "aten::linalg_vector_norm", "f32[1000000] 2 - False -", 4),
            ("rtx3060-12g", "aten::norm", "f32[4096,1024] 2 (0) True", 4096),
            ("rtx3060-12g", "aten::var", "f32[1000000] - - False", 4),
            ("rtx3060-12g", "aten::argmax", "f32[1000000] - False", 8),
            ("rtx3060-12g", "aten::amax", "bf16[1000000] () False", 2),
            ("rtx3060-12g", "aten::any", "bool[1000000]", 1),
            ("rtx3060-12g", "aten::sum", "f32[0,1024] (0) False -", 4096),
            ("rtx3060-12g", "aten::sum", "f32[4096,1024] (7) False -", 4096),
        ] {
            let (schedule, _) = lowered(&reduction(operator, arguments, bytes), &on(device, 11));
            let added = schedule.blocks.iter().filter(|b| b.rule == Some(&RULE.rule));
            let sizes: Vec<u64> = added.map(|b| b.size.get()).collect();
            let _ = writeln!(table, "{device} {operator} {arguments}: {sizes:?}");
        }
        expect![[r#"
            rtx3060-12g aten::sum f32[4096,1024] (0) False -: [22020096, 32]
            a100-40g aten::sum f32[4096,1024] (0) False -: [33554432, 32]
            rtx3060-12g aten::sum f32[1000000] -: [336, 4]
            rtx3060-12g aten::sum f64[1000000] -: [672, 4]
            rtx3060-12g aten::mean f32[4096,1024] (-2) True -: [22020096, 32]
            rtx3060-12g aten::sum bf16[4096,1024] (0) False -: [22020096, 32]
            rtx3060-12g aten::sum f32[4096,1024]:1,4096 (1) False -: [23068672, 128]
            rtx3060-12g aten::sum f32[4096,1024] (1) False -: []
            rtx3060-12g aten::sum f32[8,512,1024] (0,1) False -: [22020096, 32]
            rtx3060-12g aten::linalg_vector_norm f32[1000000] 2 - False -: [336, 4]
            rtx3060-12g aten::norm f32[4096,1024] 2 (0) True: [22020096, 32]
            rtx3060-12g aten::var f32[1000000] - - False: [1344, 4]
            rtx3060-12g aten::argmax f32[1000000] - False: [1344, 4]
            rtx3060-12g aten::amax bf16[1000000] () False: [168, 4]
            rtx3060-12g aten::any bool[1000000]: [84, 4]
            rtx3060-12g aten::sum f32[0,1024] (0) False -: []
            rtx3060-12g aten::sum f32[4096,1024] (7) False -: []
        "#]]
        .assert_eq(&table);
    }
}
