//! Matrix products: workspaces of cuBLAS and cublasLt.

use crate::support::case::on;
use crate::support::{Case, Script, check, lowered, target};
use expect_test::expect;
use std::fmt::Write as _;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: "cublas-workspace",
            shows: "PyTorch 2.11: one for the forward thread, one for autograd's, for ever",
            script: two_layers(),
            target: target(),
            requests: expect![[r#"
                PyTorch 2.11: one for the forward thread, one for autograd's, for ever
                    + w1 4096 parameter model-placement
                    + b1 128 parameter model-placement
                    + w2 4096 parameter model-placement
                    + b2 128 parameter model-placement
                    + h 8192 activation
                on  + cublas-workspace#1 8519680 workspace
                    + cublaslt-workspace#1 1048576 workspace
                    + y 8192 activation
                    + gh 8192 gradient
                on  + cublas-workspace#2 8519680 workspace
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
            rule: "cublas-workspace",
            shows: "PyTorch 2.15: one for each call",
            script: two_layers(),
            target: on("rtx3060-12g", 15),
            requests: expect![[r#"
                PyTorch 2.15: one for each call
                    + w1 4096 parameter model-placement
                    + b1 128 parameter model-placement
                    + w2 4096 parameter model-placement
                    + b2 128 parameter model-placement
                    + h 8192 activation
                    + cublaslt-workspace#1 1048576 workspace
                    - cublaslt-workspace#1
                    + y 8192 activation
                    + cublaslt-workspace#2 1048576 workspace
                    - cublaslt-workspace#2
                    + gh 8192 gradient
                on  + cublas-workspace#1 8519680 workspace
                on  - cublas-workspace#1
                    + gw2 4096 gradient
                on  + cublas-workspace#2 8519680 workspace
                on  - cublas-workspace#2
                    - y
                    + gb2 128 gradient
                    + gx 8192 gradient
                on  + cublas-workspace#3 8519680 workspace
                on  - cublas-workspace#3
                    + gw1 4096 gradient
                on  + cublas-workspace#4 8519680 workspace
                on  - cublas-workspace#4
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
            rule: "cublaslt-workspace",
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
            rule: "cublaslt-workspace",
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
            rule: "cublaslt-workspace",
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

/// Two linear layers with bias, forward and backward.
fn two_layers() -> Script {
    let mut t = Script::default();
    t.model(&[("w1", &[32, 32]), ("b1", &[32]), ("w2", &[32, 32]), ("b2", &[32])]);
    t.iteration(0, |t| {
        for (sequence, output) in [(1, "h"), (2, "y")] {
            let layer = "f32[64,32] f32[32,32] f32[32]";
            t.op_seq(sequence, "aten::linear", layer, |t| {
                let arguments = "f32[32] f32[64,32] f32[32,32]:1,32 1 1";
                t.makes_seq(sequence, "aten::addmm", arguments, output, 8192);
            });
        }
        for (sequence, input, kept) in [(2, "gh", "y"), (1, "gx", "h")] {
            t.node(sequence, "AddmmBackward0", |t| {
                t.makes("aten::mm", "f32[64,32] f32[32,32]", input, 8192);
                t.makes("aten::mm", "f32[32,64]:1,32 f32[64,32]", &format!("gw{sequence}"), 4096);
                t.free(kept);
            });
            t.accumulate("f32[32,32]");
            t.makes("aten::sum", "f32[64,32] (0) True -", &format!("gb{sequence}"), 128);
            t.accumulate("f32[32]");
        }
        t.free("gh gx gw1 gw2 gb1 gb2");
    });
    t
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

#[test]
fn schedules_are_as_expected() {
    check(cases());
}

/// aten/src/ATen/cuda/CublasHandlePool.cpp and aten/src/ATen/cuda/CUDABlas.cpp of each version.
#[test]
fn workspaces_by_device_and_version() {
    let mut table = String::new();
    for (device, minor) in [
        ("rtx3060-12g", 8),
        ("rtx3060-12g", 9),
        ("rtx3060-12g", 11),
        ("rtx3060-12g", 15),
        ("h100-80g", 8),
        ("h100-80g", 11),
        ("h100-80g", 15),
        ("b200-180g", 11),
        ("b200-180g", 12),
        ("b200-180g", 15),
    ] {
        let (schedule, _) = lowered(&two_layers(), &on(device, minor));
        let _ = write!(table, "{device} 2.{minor}:");
        for (name, short) in [("cublas-workspace", "cublas"), ("cublaslt-workspace", "lt")] {
            let added: Vec<_> = schedule.blocks.iter().filter(|b| b.rule == Some(name)).collect();
            let freed = schedule.requests.iter().filter(|r| {
                r.kind == xmem_types::RequestKind::Free
                    && schedule.block(r.block).rule == Some(name)
            });
            let size = added.first().map_or(0, |b| b.size.get());
            assert!(added.iter().all(|b| b.size.get() == size), "all of one size");
            let _ = write!(table, " {short} {} x {size}, {} freed;", added.len(), freed.count());
        }
        table.push('\n');
    }
    expect![[r#"
        rtx3060-12g 2.8: cublas 2 x 8519680, 0 freed; lt 2 x 1048576, 2 freed;
        rtx3060-12g 2.9: cublas 2 x 8519680, 0 freed; lt 1 x 1048576, 0 freed;
        rtx3060-12g 2.11: cublas 2 x 8519680, 0 freed; lt 1 x 1048576, 0 freed;
        rtx3060-12g 2.15: cublas 4 x 8519680, 4 freed; lt 2 x 1048576, 2 freed;
        h100-80g 2.8: cublas 2 x 33554432, 0 freed; lt 2 x 1048576, 2 freed;
        h100-80g 2.11: cublas 2 x 33554432, 0 freed; lt 1 x 1048576, 0 freed;
        h100-80g 2.15: cublas 4 x 33554432, 4 freed; lt 2 x 1048576, 2 freed;
        b200-180g 2.11: cublas 2 x 8519680, 0 freed; lt 1 x 1048576, 0 freed;
        b200-180g 2.12: cublas 2 x 33554432, 0 freed; lt 0 x 0, 0 freed;
        b200-180g 2.15: cublas 4 x 33554432, 4 freed; lt 2 x 1048576, 2 freed;
    "#]]
    .assert_eq(&table);
}
