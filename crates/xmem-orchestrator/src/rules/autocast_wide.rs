//! Operators that CUDA's autocast runs in 32 bits and the CPU's does not.
//!
//! The result of such an operator is twice as large, and so is everything computed from it element by
//! element, until a matrix product or a convolution casts it down again. The trace has no tensor ids: an
//! operator is taken to read the latest live blocks of its inputs' sizes.
//!
//! A recording of `xmem profile` whose `autocast_lists` is `cuda` shows the casts that CUDA's autocast makes: the
//! rule does not apply to it.

use crate::frame::context::Context;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::{Addition, Edits};
use crate::rule::Rule;
use rustc_hash::FxHashMap;
use xmem_analyzer::{DType, Profile, Role};
use xmem_types::{BlockId, Bytes, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "autocast-wide",
        summary: "operators that only CUDA's autocast runs in 32 bits (pow, exp, softmax, layer and group norm, resampling) double what is computed from them, until it is cast down",
        source: "aten/src/ATen/autocast_mode.h `AT_FORALL_FP32`, `AT_FORALL_FP32_SET_OPT_DTYPE`; autocast_mode.cpp (CPU list)",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(widen),
};

/// Operators of the float32 list that are common on activations and absent from the CPU's list,
/// whose backward reads the input: the cast copy is kept instead of the input.
const KEEP_CAST: &[&str] = &[
    "aten::pow",
    "aten::square",
    "aten::log",
    "aten::log10",
    "aten::log1p",
    "aten::log2",
    "aten::softplus",
    "aten::sinh",
    "aten::cosh",
    "aten::layer_norm",
    "aten::group_norm",
];

/// The same, where backward reads the result or nothing: the cast copy goes when they return.
const PASS_CAST: &[&str] = &[
    "aten::exp",
    "aten::expm1",
    "aten::reciprocal",
    "aten::rsqrt",
    "aten::tan",
    "aten::upsample_nearest1d",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest3d",
    "aten::upsample_linear1d",
    "aten::upsample_bilinear2d",
    "aten::upsample_bicubic2d",
    "aten::upsample_trilinear3d",
];

/// Operators whose result is requested in float32 (`fp32_set_opt_dtype`). Kernels read float16 as
/// it is and bfloat16 from a cast copy.
const WIDE_RESULT: &[&str] =
    &["aten::softmax", "aten::log_softmax", "aten::cumsum", "aten::cumprod"];

/// Operators that compute element by element in the wider of their inputs' types.
const ELEMENTWISE: &[&str] = &[
    "aten::mul",
    "aten::add",
    "aten::sub",
    "aten::div",
    "aten::tanh",
    "aten::neg",
    "aten::sigmoid",
    "aten::relu",
    "aten::gelu",
    "aten::silu",
    "aten::clamp",
    "aten::dropout",
    "aten::masked_fill",
    "aten::where",
    "aten::clone",
    "aten::hardswish",
    "aten::leaky_relu",
    "aten::elu",
    "aten::mish",
    "aten::sqrt",
    "aten::abs",
];

/// Operators of the lower-precision list: they cast wide inputs down.
const CAST_DOWN: &[&str] = &[
    "aten::linear",
    "aten::addmm",
    "aten::matmul",
    "aten::mm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::_convolution",
];

/// Below this many elements a tensor is not worth following.
const SMALL: Count = Count(1024);

/// Blocks that are wide on CUDA, and the operators that made them.
type Wide = FxHashMap<BlockId, OpId>;

/// Widens what CUDA's autocast keeps in 32 bits.
fn widen(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    let profile = cx.profile;
    // A recording in which autocast has CUDA's lists shows the casts.
    if cx.has_cuda_autocast_lists() || !autocast_is_on(profile) {
        return;
    }
    let mut wide = Wide::default();
    // Inputs that only the cast operator kept; on CUDA it keeps the cast copy instead.
    let mut unkept: Vec<BlockId> = Vec::new();
    let order = profile.tree.preorder();
    let mut at = 0;
    while let Some(&op) = order.get(at) {
        at += 1;
        if profile.is_annotation(op) {
            continue;
        }
        at += profile.tree.descendants(op).len();
        let operator = profile.op_name(op);
        let half = profile.arguments(op).tensor(0).filter(|t| t.dtype.is_half());
        if let Some(input) = half.and_then(|t| widened(operator, t.dtype)) {
            // What is wide already needs no cast.
            let input = if read(edits, op, &wide).is_some() { Input::AsIs } else { input };
            raise(cx, edits, op, input, &mut wide);
            if input == Input::Kept {
                unkept.extend(kept_input(cx, edits, op));
            }
        } else if wide.is_empty() {
        } else if ELEMENTWISE.contains(&operator) {
            if read(edits, op, &wide).is_some() {
                raise(cx, edits, op, Input::AsIs, &mut wide);
            }
        } else if CAST_DOWN.contains(&operator)
            && let Some(input) = read(edits, op, &wide)
        {
            let maker = wide.remove(&input);
            cast_down(cx, edits, op, input, maker);
            let gone = edits.before(op);
            for block in unkept.drain(..) {
                edits.move_free(block, gone);
            }
        }
    }
}

/// The fate of an operator's input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    /// It is cast, and backward keeps the cast copy.
    Kept,
    /// It is cast for the length of the call.
    Passing,
    /// It is read as it is.
    AsIs,
}

/// The fate of the input of an operator that makes float32 of half precision; `None` for other
/// operators.
fn widened(operator: &str, dtype: DType) -> Option<Input> {
    if KEEP_CAST.contains(&operator) {
        Some(Input::Kept)
    } else if PASS_CAST.contains(&operator) {
        Some(Input::Passing)
    } else if WIDE_RESULT.contains(&operator) {
        Some(if dtype == DType::BF16 { Input::Passing } else { Input::AsIs })
    } else {
        None
    }
}

/// Autocast dispatches an operator of its lists again within itself.
fn autocast_is_on(profile: &Profile) -> bool {
    profile.tree.preorder().iter().any(|&op| {
        CAST_DOWN.contains(&profile.op_name(op))
            && profile.tree.children(op).any(|c| profile.op_symbol(c) == profile.op_symbol(op))
    })
}

/// Doubles an operator's result and the blocks of its backward.
fn raise(cx: &Context<'_>, edits: &mut Edits<'_, '_>, op: OpId, input: Input, wide: &mut Wide) {
    let profile = cx.profile;
    let Some(tensor) = profile.arguments(op).tensors().max_by_key(|t| Count::elements(t)) else {
        return;
    };
    let elements = Count::elements(tensor);
    let (narrow, doubled) = (Bytes::from(elements * 2), Bytes::from(elements * 4));
    if elements < SMALL {
        return;
    }
    let resampled = profile.op_name(op).starts_with("aten::upsample");
    let result = if resampled { largest(edits, op) } else { of_size(edits, op, narrow) };
    let Some(result) = result else { return };
    edits.resize(result, (Count::from(edits.recorded_size(result)) * 2).into());
    wide.insert(result, op);
    let node = cx.backward.within(profile, op).first().copied();
    if let Some(node) = node {
        for block in edits.blocks_in(node) {
            if edits.live(block) && edits.item(block).size() == narrow {
                edits.resize(block, doubled);
            }
        }
    }
    if input == Input::AsIs {
        return;
    }
    let alloc = edits.next(edits.before(op));
    let (last, role) = match (input, node) {
        (Input::Kept, Some(node)) => (node, Role::Activation),
        _ => (op, Role::Temporary),
    };
    let free = edits.after_op(last);
    edits.add(Addition { size: doubled, alloc, free, role, op });
    // The cast's own backward: the wide gradient gives way to one in the input's type.
    let Some(node) = node else { return };
    if let Some(gradient) = of_size(edits, node, doubled) {
        hand_over(edits, gradient, narrow, node);
    }
}

/// The input that an operator alone keeps for its backward: freed by its node.
fn kept_input(cx: &Context<'_>, edits: &Edits<'_, '_>, op: OpId) -> Option<BlockId> {
    let profile = cx.profile;
    let node = cx.backward.within(profile, op).first().copied()?;
    let (start, end) = (profile.op_start(node), profile.op_end(node));
    let size = Bytes::from(Count::bytes(profile.arguments(op).tensor(0)?));
    edits.recent(op).find(|&block| {
        let block = profile.block(block);
        block.size == size && block.free_time.is_some_and(|f| start <= f && f <= end)
    })
}

/// A product or convolution reads a wide tensor: it keeps a cast copy. The wide one goes when it
/// returns, or with the backward of its maker where that reads its own result (softmax).
fn cast_down(
    cx: &Context<'_>,
    edits: &mut Edits<'_, '_>,
    op: OpId,
    input: BlockId,
    maker: Option<OpId>,
) {
    let profile = cx.profile;
    let narrow = edits.recorded_size(input);
    let alloc = edits.next(edits.before(op));
    let kept = maker.is_some_and(|maker| {
        let freed = profile.block(input).free_time;
        cx.backward
            .within(profile, maker)
            .iter()
            .any(|&n| freed.is_some_and(|f| profile.op_start(n) <= f && f <= profile.op_end(n)))
    });
    let users = cx.backward.within(profile, op);
    let free = match users.first() {
        Some(&node) if kept => edits.after_op(node),
        _ => edits.item(input).free(),
    };
    edits.add(Addition { size: narrow, alloc, free, role: Role::Activation, op });
    if !kept {
        let done = edits.after_op(op);
        edits.move_free(input, done);
    }
    for node in users {
        let Some(gradient) = of_size(edits, node, narrow) else { continue };
        hand_over(edits, gradient, (Count::from(narrow) * 2).into(), node);
        return;
    }
}

/// After `node` a gradient is cast: a block of `size` lives on in its stead.
fn hand_over(edits: &mut Edits<'_, '_>, gradient: BlockId, size: Bytes, node: OpId) {
    let done = edits.after_op(node);
    let free = edits.item(gradient).free();
    let alloc = edits.next(done);
    edits.add(Addition { size, alloc, free, role: Role::Temporary, op: node });
    let gone = edits.next(done);
    edits.move_free(gradient, gone);
}

/// The last escaping block of this size that an operator makes.
fn of_size(edits: &Edits<'_, '_>, op: OpId, size: Bytes) -> Option<BlockId> {
    edits.escaping(op).into_iter().rev().find(|&block| edits.item(block).size() == size)
}

/// The largest escaping block that an operator makes.
fn largest(edits: &Edits<'_, '_>, op: OpId) -> Option<BlockId> {
    edits.escaping(op).into_iter().max_by_key(|&block| edits.item(block).size())
}

/// The wide block among the latest live blocks of the sizes of an operator's 16-bit inputs.
fn read(edits: &Edits<'_, '_>, op: OpId, wide: &Wide) -> Option<BlockId> {
    let profile = edits.profile();
    let start = profile.op_start(op);
    let inputs = profile.arguments(op).tensors().filter(|t| t.dtype.is_half());
    let mut sizes: Vec<Bytes> =
        inputs.filter(|t| Count::elements(t) >= SMALL).map(|t| Count::bytes(t).into()).collect();
    for id in edits.recent(op) {
        let block = profile.block(id);
        if block.free_time.is_some_and(|f| f < start) {
            continue;
        }
        let Some(at) = sizes.iter().position(|&s| s == block.size) else { continue };
        if wide.contains_key(&id) {
            return Some(id);
        }
        sizes.swap_remove(at);
        if sizes.is_empty() {
            break;
        }
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "pow casts up, its result and what is computed from it are wide until the matrix product",
                script: powers(Autocast::On),
                target: target(),
                requests: expect![[r#"
                    pow casts up, its result and what is computed from it are wide until the matrix product
                    on  + h 4096 activation autocast-wide
                    on  + autocast-wide#1 8192 activation
                    on  + cubed 8192 activation autocast-wide
                    on  + product 8192 activation autocast-wide
                    on  - h
                    on  + autocast-wide#2 4096 activation
                    off + h 4096 activation
                    off + cubed 4096 activation
                    off + product 4096 activation
                        + y 4096 activation
                    on  - product
                        + seed 4 temporary
                    on  + g_product 4096 temporary autocast-wide
                    off + g_product 4096 temporary
                        - y
                    on  - autocast-wide#2
                    on  + autocast-wide#3 8192 temporary
                    on  - g_product
                    on  + g_cubed 8192 temporary autocast-wide
                    off - product
                    off + g_cubed 4096 temporary
                        - cubed
                    on  - autocast-wide#3
                    on  + gh 8192 temporary autocast-wide
                    off - g_product
                    off + gh 4096 temporary
                    off - h
                        - g_cubed
                    on  + autocast-wide#4 4096 temporary
                        - gh
                    on  - autocast-wide#1
                    on  - autocast-wide#4
                        - seed
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "softmax reads a passing cast copy; its wide result stays for its own backward",
                script: scores(),
                target: target(),
                requests: expect![[r#"
                    softmax reads a passing cast copy; its wide result stays for its own backward
                        + h 4096 temporary
                    on  + autocast-wide#1 8192 temporary
                    on  + weights 8192 activation autocast-wide
                    on  - autocast-wide#1
                    off + weights 4096 activation
                        - h
                    on  + autocast-wide#2 4096 activation
                        + y 4096 activation
                    on  + g_weights 4096 temporary autocast-wide
                    off + g_weights 4096 temporary
                        + cublas-workspace#1 8519680 workspace
                        - y
                    on  + autocast-wide#3 8192 temporary
                    on  - g_weights
                    on  - autocast-wide#2
                    on  + g_h 8192 temporary autocast-wide
                    on  + softmax-backward#1 8192 workspace
                    off + g_h 4096 temporary
                    off + softmax-backward#1 4096 workspace
                        - softmax-backward#1
                    on  - autocast-wide#3
                    off - g_weights
                        - weights
                    on  + autocast-wide#4 4096 temporary
                        - g_h
                    on  - autocast-wide#4
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "group_norm keeps a cast copy of its input, an upsampled result is wide",
                script: normalized(),
                target: target(),
                requests: expect![[r#"
                    group_norm keeps a cast copy of its input, an upsampled result is wide
                    on  + h 4096 activation autocast-wide
                    on  + autocast-wide#1 8192 activation
                    on  + normal 8192 temporary autocast-wide
                    on  + longer 16384 activation autocast-wide
                    off + h 4096 activation
                    off + normal 4096 temporary
                    off + longer 8192 activation
                        - normal
                    on  - h
                    on  + autocast-wide#2 8192 activation
                        + y 8192 activation
                    on  - longer
                    on  + g_longer 8192 temporary autocast-wide
                    off + g_longer 8192 temporary
                        + cublas-workspace#1 8519680 workspace
                        - y
                    on  - autocast-wide#2
                    on  + autocast-wide#3 16384 temporary
                    off - longer
                    off + g_normal 4096 temporary
                        - g_longer
                    on  + g_normal 8192 temporary autocast-wide
                    on  - autocast-wide#3
                    on  + g_h 8192 temporary autocast-wide
                    off + g_h 4096 temporary
                        - g_normal
                    on  + autocast-wide#4 4096 temporary
                    off - h
                        - g_h
                    on  - autocast-wide#1
                    on  - autocast-wide#4
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "the same on a bfloat16 model without autocast: nothing differs",
                script: powers(Autocast::Off),
                target: target(),
                requests: expect![[r#"
                    the same on a bfloat16 model without autocast: nothing differs
                        + h 4096 activation
                        + cublas-workspace#1 8519680 workspace
                        + cubed 4096 activation
                        + product 4096 activation
                        + y 4096 activation
                        + seed 4 temporary
                        + g_product 4096 temporary
                        - y
                        - product
                        + g_cubed 4096 temporary
                        - cubed
                        - g_product
                        + gh 4096 temporary
                        - h
                        - g_cubed
                        - gh
                        - seed
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "recorded with the lists of CUDA: nothing differs, since the casts are in the trace",
                script: recorded_with_cuda_lists(),
                target: target(),
                requests: expect![[r#"
                    recorded with the lists of CUDA: nothing differs, since the casts are in the trace
                        + h 4096 activation
                        + cubed 4096 activation
                        + product 4096 activation
                        + y 4096 activation
                        + seed 4 temporary
                        + g_product 4096 temporary
                        - y
                        - product
                        + g_cubed 4096 temporary
                        - cubed
                        - g_product
                        + gh 4096 temporary
                        - h
                        - g_cubed
                        - gh
                        - seed
                "#]],
            },
        ]
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Autocast {
        On,
        Off,
    }

    /// `(p * p) @ w` of `p = (x @ w) ** 3` over 64 x 32 values: 4096 bytes in bfloat16.
    fn powers(autocast: Autocast) -> Script {
        let value = "bf16[64,32]";
        let product = |t: &mut Script, sequence: u32, output: &str| {
            let layer = "bf16[64,32] bf16[32,32]:1,32";
            // Autocast dispatches the operator again within itself.
            t.op_seq(sequence, "aten::matmul", layer, |t| match autocast {
                Autocast::On => t.makes_seq(sequence, "aten::matmul", layer, output, 4096),
                Autocast::Off => t.makes_seq(sequence, "aten::mm", layer, output, 4096),
            });
        };
        let mut t = Script::default();
        t.iteration(0, |t| {
            product(t, 1, "h");
            t.makes_seq(2, "aten::pow", &format!("{value} 3"), "cubed", 4096);
            t.makes_seq(3, "aten::mul", &format!("{value} {value}"), "product", 4096);
            product(t, 4, "y");
            t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
            t.node(4, "MmBackward0", |t| {
                t.makes("aten::mul", value, "g_product", 4096);
                t.free("y product");
            });
            t.node(3, "MulBackward0", |t| {
                t.makes("aten::mul", &format!("{value} {value}"), "g_cubed", 4096);
                t.free("cubed g_product");
            });
            t.node(2, "PowBackward0", |t| {
                t.makes("aten::mul", &format!("{value} {value}"), "gh", 4096);
                t.free("h g_cubed");
            });
            t.node(1, "MmBackward0", |t| t.free("gh"));
            t.free("seed");
        });
        t
    }

    /// The same script, whose recorder says that autocast had the lists of CUDA.
    fn recorded_with_cuda_lists() -> Script {
        let mut t = powers(Autocast::On);
        t.recording(r#""autocast_lists": "cuda""#);
        t
    }

    /// `softmax(x @ w) @ w` over 64 x 32 values: 4096 bytes in bfloat16.
    fn scores() -> Script {
        let value = "bf16[64,32]";
        let mut t = Script::default();
        t.iteration(0, |t| {
            product(t, 1, "h", 4096);
            t.makes_seq(2, "aten::softmax", &format!("{value} -1 -"), "weights", 4096);
            t.free("h");
            product(t, 3, "y", 4096);
            t.node(3, "MmBackward0", |t| {
                t.makes("aten::mm", value, "g_weights", 4096);
                t.free("y");
            });
            t.node(2, "SoftmaxBackward0", |t| {
                let arguments = format!("{value} {value} -1 15");
                t.makes("aten::_softmax_backward_data", &arguments, "g_h", 4096);
                t.free("g_weights weights");
            });
            t.node(1, "MmBackward0", |t| t.free("g_h"));
        });
        t
    }

    /// `upsample(group_norm(x @ w)) @ w`, of 64 x 32 values and twice as many.
    fn normalized() -> Script {
        let value = "bf16[1,64,32]";
        let mut t = Script::default();
        t.iteration(0, |t| {
            product(t, 1, "h", 4096);
            t.op_seq(2, "aten::group_norm", &format!("{value} 2 - - 0.00001 True"), |t| {
                t.makes_seq(2, "aten::native_group_norm", value, "normal", 4096);
            });
            t.makes_seq(3, "aten::upsample_nearest1d", &format!("{value} [64] -"), "longer", 8192);
            t.free("normal");
            product(t, 4, "y", 8192);
            t.node(4, "MmBackward0", |t| {
                t.makes("aten::mm", "bf16[64,64]", "g_longer", 8192);
                t.free("y longer");
            });
            t.node(3, "UpsampleNearest1DBackward0", |t| {
                let name = "aten::upsample_nearest1d_backward";
                t.makes(name, "bf16[1,64,64] [64] [1,64,32] -", "g_normal", 4096);
                t.free("g_longer");
            });
            t.node(2, "NativeGroupNormBackward0", |t| {
                t.makes("aten::native_group_norm_backward", value, "g_h", 4096);
                t.free("g_normal h");
            });
            t.node(1, "MmBackward0", |t| t.free("g_h"));
        });
        t
    }

    /// A product under autocast, which dispatches the operator again within itself.
    fn product(t: &mut Script, sequence: u32, output: &str, bytes: u64) {
        let layer = format!("bf16[64,{}] bf16[32,32]:1,32", bytes / 128);
        t.op_seq(sequence, "aten::matmul", &layer, |t| {
            t.makes_seq(sequence, "aten::matmul", &layer, output, bytes);
        });
    }
}
