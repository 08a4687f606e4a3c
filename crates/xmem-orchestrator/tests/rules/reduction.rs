//! Reductions: global buffers and semaphores.

use crate::support::case::on;
use crate::support::{Case, Script, check, lowered, target};
use expect_test::expect;
use std::fmt::Write as _;

const RULE: &str = "reduction-buffer";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE,
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
            rule: RULE,
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
            rule: RULE,
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
            rule: RULE,
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

#[test]
fn schedules_are_as_expected() {
    check(cases());
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
        let added = schedule.blocks.iter().filter(|b| b.rule == Some(RULE));
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
