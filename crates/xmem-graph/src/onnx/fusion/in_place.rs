//! Operators that write into their operand. ONNX has none of them; convolutional networks are written with them
//! (`nn.ReLU(inplace=True)` and `out += identity` throughout torchvision and timm), transformers are not.

use super::super::model::{Model, Name, Node};

/// Activations with an argument `inplace` in torch.nn.
const ACTIVATIONS: &[&str] =
    &["Relu", "Clip", "HardSwish", "HardSigmoid", "Swish", "LeakyRelu", "Elu", "Mish"];

/// Layers whose result nothing but the next layer needs.
const LAYERS: &[&str] =
    &["Conv", "ConvTranspose", "BatchNormalization", "Gemm", "xmem::Linear", "Add"];

/// Marks the operators that are taken to be in place; returns how many.
pub(super) fn mark(model: &mut Model) -> usize {
    let has = |operators: &[&str]| {
        model.nodes.iter().any(|node| operators.contains(&node.operator.as_str()))
    };
    let is_convolutional = has(&["Conv"])
        && !has(&["LayerNormalization", "GroupNormalization", "RMSNormalization", "Attention"]);
    if !is_convolutional {
        return 0;
    }
    let mut makers = vec![None; model.names.len()];
    let mut uses = vec![0_u32; model.names.len()];
    for (at, node) in model.nodes.iter().enumerate() {
        node.outputs.iter().flatten().for_each(|&name| makers[name] = Some(at));
        node.inputs.iter().flatten().for_each(|&name| uses[name] += 1);
    }
    model.outputs.iter().for_each(|&name| uses[name] += 1);
    let is_free = |name: Option<Name>, layers: &[&str]| {
        let Some(name) = name else { return false };
        let maker = makers[name].map(|at: usize| model.nodes[at].operator.as_str());
        uses[name] == 1 && maker.is_some_and(|maker| layers.contains(&maker))
    };
    let is_in_place = |node: &Node| match node.operator.as_str() {
        // A branch, to which the other is added.
        "Add" => is_free(node.input(0), &["BatchNormalization"]),
        operator => ACTIVATIONS.contains(&operator) && is_free(node.input(0), LAYERS),
    };
    let marked: Vec<usize> =
        (0..model.nodes.len()).filter(|&at| is_in_place(&model.nodes[at])).collect();
    for &at in &marked {
        model.nodes[at].in_place = true;
    }
    marked.len()
}
