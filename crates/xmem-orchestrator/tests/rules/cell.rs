//! GRU cells: requests as recorded with PyTorch 2.11's CUDA build, kernels stubbed.

use crate::support::{Case, Script, check, target};
use expect_test::expect;

const RULE: &str = "gru-cell";
const CELL: &str = "f32[8,32] f32[8,32] f32[96,32] f32[96,32] f32[96] f32[96]";
const LINEAR: &str = "f32[96] f32[8,32] f32[32,96] 1 1";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE,
            shows: "both gates and a workspace stay for backward; the products have no bias",
            script: cell(Autograd::On),
            target: target(),
            requests: expect![[r#"
                both gates and a workspace stay for backward; the products have no bias
                    + x 1024 input
                on  + gates_x 3072 temporary gru-cell
                off + gates_x 3072 temporary
                    + cublas-workspace#1 8519680 workspace
                    + gates_h 3072 activation
                on  + gru-cell#1 5120 activation
                off + new 1024 activation
                off + candidate 1024 activation
                off + difference 1024 activation
                    + state 1024 activation
                    - gates_x
                off - candidate
                off - new
                off - difference
                    - gates_h
                on  - gru-cell#1
                    - x
                    - state
            "#]],
        },
        Case {
            rule: RULE,
            shows: "without autograd nothing stays",
            script: cell(Autograd::Off),
            target: target(),
            requests: expect![[r#"
                without autograd nothing stays
                    + wi 12288 input
                    + wh 12288 input
                    + x 1024 temporary
                on  + gates_x 3072 temporary gru-cell
                off + gates_x 3072 temporary
                    + cublas-workspace#1 8519680 workspace
                on  + gates_h 3072 temporary gru-cell
                on  + gru-cell#1 5120 activation
                off + gates_h 3072 temporary
                off + new 1024 temporary
                off + candidate 1024 temporary
                off + difference 1024 temporary
                    + state 1024 temporary
                    - gates_x
                    - gates_h
                on  - gru-cell#1
                off - new
                off - candidate
                off - difference
                    - x
                    - state
            "#]],
        },
    ]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Autograd {
    On,
    Off,
}

/// One step of a cell of 32 units with a batch of 8, as the CPU takes it.
fn cell(autograd: Autograd) -> Script {
    let mut t = Script::default();
    t.parameter("wi", &[96, 32]);
    t.parameter("wh", &[96, 32]);
    t.iteration(0, |t| {
        t.makes("aten::randn", "(8,32)", "x", 1024);
        t.op("aten::gru_cell", CELL, |t| {
            t.makes_seq(1, "aten::addmm", LINEAR, "gates_x", 3072);
            t.makes_seq(2, "aten::addmm", LINEAR, "gates_h", 3072);
            t.makes_seq(3, "aten::clone", "f32[8,32] -", "new", 1024);
            t.makes_seq(4, "aten::add", "f32[8,32] f32[8,32] 1", "candidate", 1024);
            t.makes_seq(5, "aten::sub", "f32[8,32] f32[8,32] 1", "difference", 1024);
            t.makes_seq(6, "aten::clone", "f32[8,32] -", "state", 1024);
            t.free("gates_x");
            if autograd == Autograd::Off {
                t.free("gates_h new candidate difference");
            }
        });
        if autograd == Autograd::On {
            t.node(4, "TanhBackward0", |t| t.free("candidate new difference"));
            t.node(2, "AddmmBackward0", |t| t.free("gates_h"));
        }
        t.free("x state");
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
