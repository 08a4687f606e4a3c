//! Indexing, sorting, losses and distances: sizes as recorded with PyTorch 2.11's CUDA build, kernels
//! stubbed, as an RTX 3060.

use crate::support::{Case, Script, check, lowered, target};
use expect_test::expect;
use std::fmt::Write as _;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: "index-backward",
            shows: "5000 indices: linear index, sorted index and positions, radix sort",
            script: one_operator(
                "aten::_index_put_impl_",
                "f32[2000,64] - f32[5000,64] True True",
                &[],
            ),
            target: target(),
            requests: expect![[r#"
                5000 indices: linear index, sorted index and positions, radix sort
                on  + index-backward#1 40000 workspace
                on  + index-backward#2 40000 workspace
                on  - index-backward#2
                on  + index-backward#3 40000 workspace
                on  + index-backward#4 40000 workspace
                on  + index-backward#5 40000 workspace
                on  + index-backward#6 87039 workspace
                on  - index-backward#6
                on  - index-backward#5
                on  - index-backward#4
                on  - index-backward#3
                on  - index-backward#1
            "#]],
        },
        Case {
            rule: "index-backward",
            shows: "without accumulation: nothing",
            script: one_operator(
                "aten::_index_put_impl_",
                "f32[2000,64] - f32[5000,64] False True",
                &[],
            ),
            target: target(),
            requests: expect![[r#"
                without accumulation: nothing
            "#]],
        },
        Case {
            rule: "sort-buffers",
            shows: "one long row",
            script: one_operator("aten::sort", "f32[200000] -1 False", &[800_000, 1_600_000]),
            target: target(),
            requests: expect![[r#"
                one long row
                    + y0 800000 activation
                    + y1 1600000 activation
                on  + sort-buffers#1 1600000 workspace
                on  + sort-buffers#2 2476287 workspace
                on  - sort-buffers#2
                on  - sort-buffers#1
                    - y0
                    - y1
            "#]],
        },
        Case {
            rule: "loss-buffers",
            shows: "mse_loss: the losses of all elements, summed over thread blocks",
            script: one_operator("aten::mse_loss", "f32[256,1000] f32[256,1000] 1", &[1_024_000]),
            target: target(),
            requests: expect![[r#"
                mse_loss: the losses of all elements, summed over thread blocks
                    + y0 1024000 activation
                on  + loss-buffers#1 1024000 workspace
                on  + loss-buffers#2 128 workspace
                on  + loss-buffers#3 4 workspace
                on  - loss-buffers#3
                on  - loss-buffers#2
                on  - loss-buffers#1
                    - y0
            "#]],
        },
        Case {
            rule: "loss-buffers",
            shows: "under autocast: the inner call, with the cast inputs",
            script: mse_under_autocast(),
            target: target(),
            requests: expect![[r#"
                under autocast: the inner call, with the cast inputs
                    + x 1024000 activation
                    + y 1024000 activation
                on  + loss-buffers#1 1024000 workspace
                on  + loss-buffers#2 128 workspace
                on  + loss-buffers#3 4 workspace
                on  - loss-buffers#3
                on  - loss-buffers#2
                on  - loss-buffers#1
                    - x
                    - y
            "#]],
        },
        Case {
            rule: "loss-buffers",
            shows: "log_sigmoid: no buffer for backward",
            script: one_operator(
                "aten::log_sigmoid_forward",
                "f32[256,1000]",
                &[1_024_000, 1_024_000],
            ),
            target: target(),
            requests: expect![[r#"
                log_sigmoid: no buffer for backward
                    + y0 1024000 activation
                off + y1 1024000 activation
                    - y0
                off - y1
            "#]],
        },
        Case {
            rule: "cdist-backward",
            shows: "a row for each pair of vectors",
            script: one_operator(
                "aten::_cdist_backward",
                "f32[8,200,50] f32[8,200,64] f32[8,50,64] 1 f32[8,200,50]",
                &[409_600],
            ),
            target: target(),
            requests: expect![[r#"
                a row for each pair of vectors
                    + y0 409600 activation
                on  + cdist-backward#1 20480000 workspace
                on  - cdist-backward#1
                    - y0
            "#]],
        },
        Case {
            rule: "promoted-operands",
            shows: "a mask times a float: no converted copy",
            script: promoted("aten::mul"),
            target: target(),
            requests: expect![[r#"
                a mask times a float: no converted copy
                off + copy 8192 temporary
                    + y 8192 activation
                off - copy
                    - y
            "#]],
        },
        Case {
            rule: "promoted-operands",
            shows: "a sum that converts does so on both devices",
            script: promoted("aten::sum"),
            target: target(),
            requests: expect![[r#"
                a sum that converts does so on both devices
                    + copy 8192 temporary
                    + y 8192 activation
                    - copy
                    - y
            "#]],
        },
    ]
}

fn one_operator(operator: &str, arguments: &str, outputs: &[u64]) -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.op_seq(1, operator, arguments, |t| {
            for (i, &bytes) in outputs.iter().enumerate() {
                t.alloc(&format!("y{i}"), bytes);
            }
        });
        t.node(1, "SomeBackward0", |_| ());
        for i in 0..outputs.len() {
            t.free(&format!("y{i}"));
        }
    });
    t
}

fn mse_under_autocast() -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.op("aten::mse_loss", "bf16[256,1000] bf16[256,1000] 1", |t| {
            t.op("aten::to", "bf16[256,1000] 6 False False -", |t| {
                t.makes_seq(1, "aten::_to_copy", "bf16[256,1000] 6 - - - False -", "x", 1_024_000);
            });
            t.op_seq(2, "aten::mse_loss", "f32[256,1000] f32[256,1000] 1", |t| {
                t.alloc("y", 1_024_000);
            });
        });
        t.node(2, "MseLossBackward0", |_| ());
        t.free("x y");
    });
    t
}

fn promoted(operator: &str) -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.op_seq(1, operator, "bool[64,32] f32[64,32]", |t| {
            t.op("aten::to", "bool[64,32] 6 False False -", |t| {
                t.op("aten::_to_copy", "bool[64,32] 6 - - - False -", |t| {
                    t.makes("aten::empty_strided", "(64,32) (32,1) 6 0 - False", "copy", 8192);
                });
            });
            t.alloc("y", 8192);
            t.free("copy");
        });
        t.node(1, "SomeBackward0", |_| ());
        t.free("y");
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}

/// Scratch by operator: what each asks for beside its outputs.
#[test]
fn scratch_by_operator() {
    let mut table = String::new();
    for (operator, arguments, outputs) in [
        ("aten::sort", "f32[256,1000] -1 False", &[1_024_000, 2_048_000][..]),
        ("aten::sort", "f32[50,6000] False -1 False", &[1_200_000, 2_400_000]),
        ("aten::sort", "f32[200,6000] -1 False", &[4_800_000, 9_600_000]),
        ("aten::median", "f32[8192,128]", &[4]),
        ("aten::median", "f32[256,1000] -1 False", &[1024, 2048]),
        ("aten::kthvalue", "f32[256,1000] 7 -1 False", &[1024, 2048]),
        ("aten::_index_put_impl_", "f32[64,200,32] - f32[3000,32] True True", &[]),
        ("aten::_index_put_impl_", "f32[500,64] - f32[3000,64] True False", &[]),
        ("aten::embedding_dense_backward", "f32[64,100,64] i64[64,100] 2000 -1 False", &[512_000]),
        ("aten::embedding_dense_backward", "f32[8,100,64] i64[8,100] 2000 -1 True", &[512_000]),
        ("aten::embedding_renorm_", "f32[2000,64] i64[8,100] 1 2", &[]),
        ("aten::smooth_l1_loss", "f32[256,1000] f32[256,1000] 1 1", &[1_024_000]),
        ("aten::mse_loss", "f32[256,1000] f32[256,1000] 0", &[1_024_000]),
        ("aten::_ctc_loss", "f32[50,16,40] i64[16,20] - - 0 False", &[131_200, 64]),
        (
            "aten::_ctc_loss_backward",
            "f32[16] f32[50,16,40] i64[16,20] - - f32[16] f32[16,50,41] 0 False",
            &[128_000],
        ),
        ("aten::topk", "f32[256,1000] 20 -1 True True", &[20_480, 40_960]),
        ("aten::topk", "f32[8,1024]:1,8 256 -1 True True", &[8192, 16_384]),
        ("aten::topk", "f32[4,120000] 200 -1 True True", &[3200, 6400]),
        ("aten::topk", "f32[16,50000] 50 -1 True True", &[3200, 6400]),
        (
            "aten::_embedding_bag_backward",
            "f32[64,64] i64[3200] i64[64] i64[3200] i64[64] i64[0] 2000 False 1 False - -1",
            &[512_000],
        ),
        (
            "aten::_embedding_bag_backward",
            "f32[64,64] i64[3200] i64[64] i64[3200] i64[64] i64[64,64] 2000 False 2 False - -1",
            &[512_000],
        ),
        ("aten::max", "f32[8192,128] 0 False", &[512, 1024]),
    ] {
        let (schedule, _) = lowered(&one_operator(operator, arguments, outputs), &target());
        let added = schedule.blocks.iter().filter(|b| b.rule.is_some());
        let sizes: Vec<u64> = added.map(|b| b.size.get()).collect();
        let _ = writeln!(table, "{operator} {arguments}: {sizes:?}");
    }
    expect![[r#"
        aten::sort f32[256,1000] -1 False: []
        aten::sort f32[50,6000] False -1 False: [3709183, 1200000, 83455, 2400000, 2400000]
        aten::sort f32[200,6000] -1 False: [14400255, 9600000]
        aten::median f32[8192,128]: [12941823, 8388608, 8388608, 4194304]
        aten::median f32[256,1000] -1 False: []
        aten::kthvalue f32[256,1000] 7 -1 False: []
        aten::_index_put_impl_ f32[64,200,32] - f32[3000,32] True True: [24000, 24000, 24000, 53759, 24000, 24000, 24000, 24000]
        aten::_index_put_impl_ f32[500,64] - f32[3000,64] True False: [1, 8, 1, 8, 24000, 53759, 24000, 24000, 24000, 24000]
        aten::embedding_dense_backward f32[64,100,64] i64[64,100] 2000 -1 False: [121343, 51200, 1279, 51200, 1279, 675840, 21120, 8, 16000, 16000, 8, 51200, 51200, 51200]
        aten::embedding_dense_backward f32[8,100,64] i64[8,100] 2000 -1 True: [1, 6400, 1279, 1279, 1279, 6400, 1279, 225280, 7040, 8, 6400, 6400, 8, 6400, 6400, 6400, 6400]
        aten::embedding_renorm_ f32[2000,64] i64[8,100] 1 2: [800, 6400, 1279, 8, 6400, 6400]
        aten::smooth_l1_loss f32[256,1000] f32[256,1000] 1 1: [4, 128, 1024000]
        aten::mse_loss f32[256,1000] f32[256,1000] 0: []
        aten::_ctc_loss f32[50,16,40] i64[16,20] - - 0 False: [128, 128, 128]
        aten::_ctc_loss_backward f32[16] f32[50,16,40] i64[16,20] - - f32[16] f32[16,50,41] 0 False: [131200, 128, 128, 128]
        aten::topk f32[256,1000] 20 -1 True True: []
        aten::topk f32[8,1024]:1,8 256 -1 True True: [32768]
        aten::topk f32[4,120000] 200 -1 True True: [640, 640, 4096, 81920, 32, 32, 16]
        aten::topk f32[16,50000] 50 -1 True True: [704, 704, 16384, 90112, 128, 128, 64]
        aten::_embedding_bag_backward f32[64,64] i64[3200] i64[64] i64[3200] i64[64] i64[0] 2000 False 1 False - -1: [69119, 25600, 1279, 25600, 1279, 593920, 18560, 8, 16000, 16000, 8, 25600, 25600, 25600]
        aten::_embedding_bag_backward f32[64,64] i64[3200] i64[64] i64[3200] i64[64] i64[64,64] 2000 False 2 False - -1: []
        aten::max f32[8192,128] 0 False: [33554432, 4]
    "#]].assert_eq(&table);
}
