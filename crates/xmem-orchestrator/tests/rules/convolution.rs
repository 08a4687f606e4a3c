//! Convolutions: cuDNN's workspaces.

use crate::support::{Case, Script, check, target};
use expect_test::expect;

const RULE: &str = "cudnn-convolution";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE,
            shows: "64 to 64 channels, 3 x 3: a workspace each for output, data and weight gradient, \
                    a reduction for the bias",
            script: convolution(64, 1),
            target: target(),
            requests: expect![[r#"
                64 to 64 channels, 3 x 3: a workspace each for output, data and weight gradient, a reduction for the bias
                    + w 147456 parameter model-placement
                    + b 256 parameter model-placement
                    + y 25690112 activation
                on  + cudnn-convolution#1 25837584 workspace
                on  - cudnn-convolution#1
                    + gx 25690112 gradient
                on  + cudnn-convolution#2 51527696 workspace
                on  - cudnn-convolution#2
                    + gw 147456 gradient
                on  + cudnn-convolution#3 52559888 workspace
                on  - cudnn-convolution#3
                    + gb 256 gradient
                    - y
                    - gx
                    - gw
                    - gb
            "#]],
        },
        Case {
            rule: RULE,
            shows: "depthwise, contiguous, 32 bits: PyTorch's own kernel, without a workspace",
            script: convolution(64, 64),
            target: target(),
            requests: expect![[r#"
                depthwise, contiguous, 32 bits: PyTorch's own kernel, without a workspace
                    + w 2304 parameter model-placement
                    + b 256 parameter model-placement
                    + y 25690112 activation
                    + gx 25690112 gradient
                    + gw 2304 gradient
                    + gb 256 gradient
                    - y
                    - gx
                    - gw
                    - gb
            "#]],
        },
        Case {
            rule: RULE,
            shows: "transposed: the output takes the workspace of a data gradient",
            script: transposed(),
            target: target(),
            requests: expect![[r#"
                transposed: the output takes the workspace of a data gradient
                    + w 131072 parameter model-placement
                    + y 1048576 activation
                on  + cudnn-convolution#1 1703952 workspace
                on  - cudnn-convolution#1
                    + gx 524288 gradient
                on  + cudnn-convolution#2 1179664 workspace
                on  - cudnn-convolution#2
                    + gw 131072 gradient
                on  + cudnn-convolution#3 2621456 workspace
                on  - cudnn-convolution#3
                    - y
                    - gx
                    - gw
            "#]],
        },
        Case {
            rule: RULE,
            shows: "copies in another memory format come after the output, and go with their call",
            script: with_copies(),
            target: target(),
            requests: expect![[r#"
                copies in another memory format come after the output, and go with their call
                    + w 24576 parameter model-placement
                off + weight 24576 temporary
                    + y 786432 activation
                on  + weight 24576 temporary cudnn-convolution
                    - weight
                on  + gradient 786432 temporary cudnn-convolution
                off + weight 24576 temporary
                off + gradient 786432 temporary
                    + gx 524288 gradient
                on  + weight 24576 temporary cudnn-convolution
                on  - weight
                    + gw 24576 gradient
                on  + cudnn-convolution#1 196608 workspace
                on  - cudnn-convolution#1
                off - weight
                    - gradient
                    - y
                    - gx
                    - gw
            "#]],
        },
    ]
}

/// 1 x 1 on a channels-last input: the CPU copies the weight before it makes the output, and weight and
/// gradient before both gradients.
fn with_copies() -> Script {
    let copy = |t: &mut Script, name: &str, bytes| {
        t.op("aten::contiguous", "{8,64,16,16} 2", |t| t.makes("aten::clone", "- 2", name, bytes));
    };
    let mut t = Script::default();
    t.parameter("w", &[96, 64, 1, 1]);
    t.iteration(0, |t| {
        let arguments = "f32[8,64,16,16] f32[96,64,1,1] - (1,1) (0,0) (1,1) False (0,0) 1";
        t.op_seq(1, "aten::_convolution", arguments, |t| {
            copy(t, "weight", 24_576);
            t.makes("aten::mkldnn_convolution", arguments, "y", 786_432);
            t.free("weight");
        });
        t.node(1, "ConvolutionBackward0", |t| {
            let arguments = "f32[8,96,16,16] f32[8,64,16,16] f32[96,64,1,1] - (1,1) (0,0) (1,1) \
                             False (0,0) 1 (True,True,False)";
            t.op("aten::convolution_backward", arguments, |t| {
                copy(t, "weight", 24_576);
                copy(t, "gradient", 786_432);
                t.alloc("gx", 524_288);
                t.makes("aten::_to_copy", "f32[96,64,1,1]", "gw", 24_576);
                t.free("weight gradient");
            });
            t.free("y");
        });
        t.accumulate("f32[96,64,1,1]");
        t.free("gx gw");
    });
    t
}

/// Batch 32, 56 x 56, with bias; oneDNN reorders the input.
fn convolution(channels: u64, groups: u64) -> Script {
    let image = format!("f32[32,{channels},56,56]");
    let weight = format!("f32[{channels},{},3,3]", channels / groups);
    let bytes = 32 * channels * 56 * 56 * 4;
    let weight_bytes = channels * (channels / groups) * 36;
    let settings = format!("(1,1) (1,1) (1,1) False (0,0) {groups}");
    let mut t = Script::default();
    t.model(&[("w", &[channels, channels / groups, 3, 3]), ("b", &[channels])]);
    t.iteration(0, |t| {
        let arguments = format!("{image} {weight} f32[{channels}] {settings}");
        t.op_seq(1, "aten::conv2d", &arguments, |t| {
            let arguments = format!("{arguments} False False True True");
            t.op_seq(1, "aten::_convolution", &arguments, |t| {
                t.op("aten::mkldnn_convolution", &arguments, |t| {
                    t.alloc("reordered", bytes);
                    t.alloc("y", bytes);
                    t.free("reordered");
                });
            });
        });
        t.node(1, "ConvolutionBackward0", |t| {
            let arguments =
                format!("{image} {image} {weight} ({channels}) {settings} (True,True,True)");
            t.op("aten::convolution_backward", &arguments, |t| {
                t.alloc("gx", bytes);
                t.alloc("gw", weight_bytes);
                t.alloc("gb", 4 * channels);
            });
            t.free("y");
        });
        t.accumulate(&weight);
        t.accumulate(&format!("f32[{channels}]"));
        t.free("gx gw gb");
    });
    t
}

/// 64 to 32 channels, 4 x 4, stride 2: 16 x 16 becomes 32 x 32.
fn transposed() -> Script {
    let mut t = Script::default();
    t.parameter("w", &[64, 32, 4, 4]);
    t.iteration(0, |t| {
        let arguments = "f32[8,64,16,16] f32[64,32,4,4] - (2,2) (1,1) (1,1) True (0,0) 1";
        t.makes_seq(1, "aten::_convolution", arguments, "y", 8 * 32 * 32 * 32 * 4);
        t.node(1, "ConvolutionBackward0", |t| {
            let arguments = "f32[8,32,32,32] f32[8,64,16,16] f32[64,32,4,4] - (2,2) (1,1) (1,1) \
                             True (0,0) 1 (True,True,False)";
            t.op("aten::convolution_backward", arguments, |t| {
                t.alloc("gx", 8 * 64 * 16 * 16 * 4);
                t.alloc("gw", 64 * 32 * 16 * 4);
            });
            t.free("y");
        });
        t.accumulate("f32[64,32,4,4]");
        t.free("gx gw");
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
