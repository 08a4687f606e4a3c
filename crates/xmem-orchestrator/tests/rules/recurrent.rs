//! Recurrent layers: requests as recorded with PyTorch 2.11's CUDA build, kernels stubbed; the sizes of
//! workspace and reserve are estimates.

use crate::support::{Case, Script, check, lowered, target};
use expect_test::expect;
use xmem_orchestrator::Doubt;

const RULE: &str = "cudnn-recurrent";
const PARAMETERS: [(&str, &[u64], u64); 4] = [
    ("wi", &[384, 64], 98_304),
    ("wh", &[384, 96], 147_456),
    ("bi", &[384], 1536),
    ("bh", &[384], 1536),
];

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE,
            shows: "an LSTM of one layer: reserve until backward, one flat gradient",
            script: lstm(
                "f32[30,16,64] {1,16,96;1,16,96} {384,64;384,96;384;384} True 1 0. True False False",
            ),
            target: target(),
            requests: expect![[r#"
                an LSTM of one layer: reserve until backward, one flat gradient
                    + wi 98304 parameter model-placement
                    + wh 147456 parameter model-placement
                    + bi 1536 parameter model-placement
                    + bh 1536 parameter model-placement
                    + y 184320 activation
                off + h 6144 temporary
                off + c 6144 temporary
                off + workspace 2826240 activation
                    + hy 6144 temporary
                    + cy 6144 temporary
                on  + cudnn-recurrent#1 737280 workspace
                on  + cudnn-recurrent#2 1105920 activation
                on  - cudnn-recurrent#1
                off - h
                off - c
                    - hy
                    - cy
                on  + cudnn-recurrent#3 6144 workspace
                on  + cudnn-recurrent#4 6144 workspace
                on  + cudnn-recurrent#5 122880 workspace
                on  + cudnn-recurrent#6 6144 workspace
                on  + cudnn-recurrent#7 6144 workspace
                on  + cudnn-recurrent#8 737280 workspace
                on  - cudnn-recurrent#8
                on  + gwi 248832 gradient cudnn-recurrent
                on  + cudnn-recurrent#9 737280 workspace
                on  - cudnn-recurrent#9
                on  - cudnn-recurrent#7
                on  - cudnn-recurrent#6
                on  - cudnn-recurrent#5
                on  - cudnn-recurrent#4
                on  - cudnn-recurrent#3
                on  - cudnn-recurrent#2
                off + gwi 98304 gradient
                off + gwh 147456 gradient
                off + gbi 1536 gradient
                off + gbh 1536 gradient
                off - workspace
                    - y
                    - gwi
                off - gwh
                off - gbi
                off - gbh
            "#]],
        },
        Case {
            rule: RULE,
            shows: "batch first: contiguous copies",
            script: lstm(
                "f32[16,30,64] {1,16,96;1,16,96} {384,64;384,96;384;384} True 1 0. True False True",
            ),
            target: target(),
            requests: expect![[r#"
                batch first: contiguous copies
                    + wi 98304 parameter model-placement
                    + wh 147456 parameter model-placement
                    + bi 1536 parameter model-placement
                    + bh 1536 parameter model-placement
                on  + cudnn-recurrent#1 122880 workspace
                    + y 184320 activation
                off + h 6144 temporary
                off + c 6144 temporary
                off + workspace 2826240 activation
                    + hy 6144 temporary
                    + cy 6144 temporary
                on  + cudnn-recurrent#2 737280 workspace
                on  + cudnn-recurrent#3 1105920 activation
                on  - cudnn-recurrent#2
                on  - cudnn-recurrent#1
                off - h
                off - c
                    - hy
                    - cy
                on  + cudnn-recurrent#4 6144 workspace
                on  + cudnn-recurrent#5 6144 workspace
                on  + cudnn-recurrent#6 122880 workspace
                on  + cudnn-recurrent#7 6144 workspace
                on  + cudnn-recurrent#8 6144 workspace
                on  + cudnn-recurrent#9 122880 workspace
                on  + cudnn-recurrent#10 184320 workspace
                on  + cudnn-recurrent#11 737280 workspace
                on  - cudnn-recurrent#11
                on  - cudnn-recurrent#10
                on  - cudnn-recurrent#9
                on  + cudnn-recurrent#12 122880 workspace
                on  + gwi 248832 gradient cudnn-recurrent
                on  + cudnn-recurrent#13 737280 workspace
                on  - cudnn-recurrent#13
                on  - cudnn-recurrent#12
                on  - cudnn-recurrent#8
                on  - cudnn-recurrent#7
                on  - cudnn-recurrent#6
                on  - cudnn-recurrent#5
                on  - cudnn-recurrent#4
                on  - cudnn-recurrent#3
                off + gwi 98304 gradient
                off + gwh 147456 gradient
                off + gbi 1536 gradient
                off + gbh 1536 gradient
                off - workspace
                    - y
                    - gwi
                off - gwh
                off - gbi
                off - gbh
            "#]],
        },
    ]
}

/// As oneDNN runs it on the CPU.
fn lstm(arguments: &str) -> Script {
    let mut t = Script::default();
    for (name, dims, _) in PARAMETERS {
        t.parameter(name, dims);
    }
    t.iteration(0, |t| {
        t.op("aten::lstm", arguments, |t| {
            t.op_seq(1, "aten::mkldnn_rnn_layer", "f32[30,16,64]", |t| {
                t.alloc("y", 184_320);
                t.alloc("h", 6144);
                t.alloc("c", 6144);
                t.alloc("workspace", 2_826_240);
                t.alloc("packed", 98_304);
                t.free("packed");
            });
            t.makes_seq(2, "aten::stack", "{16,96} 0", "hy", 6144);
            t.makes_seq(3, "aten::stack", "{16,96} 0", "cy", 6144);
        });
        t.free("h c hy cy");
        t.node(1, "MkldnnRnnLayerBackward0", |t| {
            t.op("aten::mkldnn_rnn_layer_backward", "f32[30,16,64]", |t| {
                t.alloc("zeros", 6144);
                t.alloc("gx", 122_880);
                for (name, _, bytes) in PARAMETERS {
                    t.alloc(&format!("g{name}"), bytes);
                }
                t.free("zeros gx");
            });
            t.free("workspace");
        });
        for (_, dims, _) in PARAMETERS {
            let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
            t.accumulate(&format!("f32[{}]", dims.join(",")));
        }
        t.free("y gwi gwh gbi gbh");
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}

#[test]
fn sizes_that_cudnn_decides_are_in_doubt() {
    for case in cases() {
        let (schedule, _) = lowered(&case.script, &target());
        let doubts: Vec<_> = schedule
            .uncertain
            .iter()
            .map(|u| (u.range.doubt, u.range.low.get(), u.range.high.get()))
            .collect();
        let units = 30 * 16 * 96 * 4;
        let weights: u64 = PARAMETERS.iter().map(|p| p.2).sum();
        let workspace = (Doubt::Library, 0, 4 * units + weights);
        let reserve = (Doubt::Library, 5 * units, 8 * units);
        assert_eq!(doubts.iter().filter(|&&d| d == workspace).count(), 3, "{}", case.shows);
        assert_eq!(doubts.iter().filter(|&&d| d == reserve).count(), 1, "{}", case.shows);
    }
}
