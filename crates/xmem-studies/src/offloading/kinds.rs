//! Kinds of layers by the names of their operators, and what their backward pass needs.

use xmem_offload::LayerKind;

/// What the backward pass of an operator needs of what the forward pass had (`derivatives.yaml` of PyTorch's
/// tools/autograd).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saves {
    /// Its inputs.
    Inputs,
    /// Its result.
    Result,
    /// Only what it made beside its result, as a mask.
    Neither,
}

/// An operator by its bare name: `aten::relu_` is `relu`.
pub(super) fn bare(name: &str) -> &str {
    let name = name.strip_prefix("aten::").unwrap_or(name);
    let name = name.trim_start_matches('_');
    name.strip_suffix('_').unwrap_or(name)
}

/// True if an operator changes its first argument.
pub(super) fn is_in_place(name: &str) -> bool {
    name.starts_with("aten::") && name.ends_with('_') && !name.ends_with("__")
}

/// The kind of a layer whose operator reads `inputs` tensors that the step has computed.
pub(super) fn kind(name: &str, inputs: usize) -> LayerKind {
    let name = bare(name);
    let is = |names: &[&str]| names.contains(&name);
    if name.contains("conv") {
        LayerKind::Conv
    } else if name.contains("pool") {
        LayerKind::Pool
    } else if name.contains("norm") && !is(&["norm", "linalg_norm"]) {
        LayerKind::Norm
    } else if name.contains("dropout") {
        LayerKind::Dropout
    } else if name.contains("softmax") || is(&["cross_entropy_loss", "nll_loss", "nll_loss_nd"]) {
        LayerKind::Softmax
    } else if is(&["linear", "addmm", "mm", "bmm", "baddbmm", "matmul", "einsum"]) {
        LayerKind::Fc
    } else if ACTIVATIONS.contains(&name) {
        LayerKind::Act
    } else if inputs > 1 && is(&["add", "cat", "concat", "mul", "stack", "sub", "where"]) {
        LayerKind::Join
    } else {
        LayerKind::Other
    }
}

/// The kind of a layer in a module, given by the path of its class names: in a Transformer, the layers of attention and of
/// the MLP are of kinds of their own, and the operators of a normalization that is written out, as LlamaRMSNorm, are one.
/// Where the recording has no modules, only fused attention is known here, and `transformer` looks for the others.
pub(super) fn within(module: &str, name: &str, kind: LayerKind) -> LayerKind {
    if bare(name).contains("scaled_dot_product") {
        return LayerKind::Attention;
    }
    let path = module.to_lowercase();
    let leaf = path.rsplit(" > ").next().unwrap_or(&path);
    if leaf.contains("norm") && matches!(kind, LayerKind::Join | LayerKind::Other) {
        return LayerKind::Norm;
    }
    let is_of_block = match kind {
        LayerKind::Fc | LayerKind::Act | LayerKind::Softmax | LayerKind::Dropout => true,
        // A gate, or a rotation of positions; an addition is that of the residual.
        LayerKind::Join => bare(name) == "mul",
        _ => false,
    };
    if !is_of_block {
        return kind;
    }
    // The innermost module that says so.
    let at = |words: &[&str]| words.iter().filter_map(|word| path.rfind(word)).max();
    let attention = at(&["attention", "attn"]);
    let mlp = at(&MLPS);
    match (attention, mlp) {
        (None, None) => kind,
        (attention, mlp) if attention > mlp => LayerKind::Attention,
        _ if !matches!(kind, LayerKind::Softmax | LayerKind::Dropout) => LayerKind::Mlp,
        _ => kind,
    }
}

/// Parts of the names of classes whose layers treat each position by itself: of transformers (GPT2MLP, LlamaMLP,
/// BertIntermediate, T5DenseActDense, OPTDecoderLayer with fc1 and fc2, Qwen2MoeExperts), torchvision (MLPBlock), and
/// PyTorch (TransformerEncoderLayer with linear1 and linear2).
const MLPS: [&str; 8] = [
    "mlp",
    "feedforward",
    "intermediate",
    "denseact",
    "densegatedact",
    "expert",
    "encoderlayer",
    "decoderlayer",
];

const ACTIVATIONS: [&str; 16] = [
    "celu",
    "clamp_min",
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "tanh",
];

/// The part of an operator's tensors that its backward pass needs.
pub(super) fn saves(name: &str, kind: LayerKind) -> Saves {
    match kind {
        LayerKind::Conv
        | LayerKind::Pool
        | LayerKind::Norm
        | LayerKind::Fc
        | LayerKind::Attention
        | LayerKind::Mlp
        | LayerKind::Other => Saves::Inputs,
        LayerKind::Softmax => Saves::Result,
        LayerKind::Dropout => Saves::Neither,
        LayerKind::Act => match bare(name) {
            "relu" | "clamp_min" | "sigmoid" | "tanh" => Saves::Result,
            _ if is_in_place(name) => Saves::Result,
            _ => Saves::Inputs,
        },
        LayerKind::Join => match bare(name) {
            "mul" | "where" => Saves::Inputs,
            _ => Saves::Neither,
        },
    }
}

/// The number of tensor arguments that can be outputs of other layers; the others are weights.
pub(super) fn data_arguments(kind: LayerKind, name: &str) -> usize {
    match kind {
        LayerKind::Conv | LayerKind::Norm | LayerKind::Pool => 1,
        LayerKind::Fc if bare(name) == "linear" => 1,
        LayerKind::Softmax => 1,
        _ => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_have_the_kinds_of_layers() {
        for (name, inputs, expected) in [
            ("aten::conv2d", 1, LayerKind::Conv),
            ("aten::batch_norm", 1, LayerKind::Norm),
            ("aten::relu_", 1, LayerKind::Act),
            ("aten::max_pool2d", 1, LayerKind::Pool),
            ("aten::adaptive_avg_pool2d", 1, LayerKind::Pool),
            ("aten::linear", 1, LayerKind::Fc),
            ("aten::add_", 2, LayerKind::Join),
            ("aten::add_", 1, LayerKind::Other),
            ("aten::cat", 4, LayerKind::Join),
            ("aten::cross_entropy_loss", 1, LayerKind::Softmax),
            ("aten::dropout", 1, LayerKind::Dropout),
            ("aten::embedding", 1, LayerKind::Other),
        ] {
            assert_eq!(kind(name, inputs), expected, "{name}");
        }
    }

    #[test]
    fn layers_of_transformers_have_kinds_of_their_own() {
        use LayerKind::{Act, Attention, Fc, Join, Mlp, Norm, Other, Softmax};
        for (module, name, kind, expected) in [
            ("GPT2Block_3 > GPT2Attention_3 > Conv1D_0", "aten::addmm", Fc, Attention),
            ("GPT2Block_3 > GPT2Attention_3", "aten::softmax", Softmax, Attention),
            ("", "aten::scaled_dot_product_attention", Other, Attention),
            ("GPT2Block_3 > GPT2MLP_3", "aten::gelu", Act, Mlp),
            ("GPT2Block_3 > LayerNorm_1", "aten::layer_norm", Norm, Norm),
            ("LlamaDecoderLayer_0 > LlamaRMSNorm_1", "aten::rsqrt", Other, Norm),
            ("LlamaDecoderLayer_0 > LlamaMLP_0", "aten::mul", Join, Mlp),
            ("LlamaDecoderLayer_0", "aten::add", Join, Join),
            ("OPTDecoderLayer_0 > Linear_4", "aten::linear", Fc, Mlp),
            ("OPTDecoderLayer_0 > OPTAttention_0 > Linear_1", "aten::linear", Fc, Attention),
            ("VGG_0 > Sequential_1 > Linear_0", "aten::linear", Fc, Fc),
        ] {
            assert_eq!(within(module, name, kind), expected, "{module} {name}");
        }
    }

    #[test]
    fn in_place_activations_keep_their_result() {
        assert!(is_in_place("aten::relu_") && !is_in_place("aten::__or__"));
        assert_eq!(saves("aten::silu", LayerKind::Act), Saves::Inputs);
        assert_eq!(saves("aten::relu", LayerKind::Act), Saves::Result);
        assert_eq!(saves("aten::hardtanh_", LayerKind::Act), Saves::Result);
    }
}
