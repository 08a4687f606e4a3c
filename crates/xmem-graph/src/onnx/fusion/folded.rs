//! Layers that an exporter folded into others, where the file shows it.

use super::super::fact::Fact;
use super::super::model::{Initializer, InitializerKind, Model, Name, Node};
use crate::dtype::DType;

/// Takes apart convolutions into which a batch normalization was folded, and gives layers back a bias that was left out
/// because it was zero. Returns what that assumes.
///
/// The exporter of torch.export notes the rules of its optimizer (onnxscript/rewriter/rules/common). That of TorchScript
/// gives weights that it computed the name of a value, `onnx::Conv_193`
/// (torch/csrc/jit/passes/onnx/eval_peephole.cpp).
pub(super) fn unfold(model: &mut Model) -> Vec<String> {
    let (mut norms, mut biases) = (0_usize, 0_usize);
    let nodes = std::mem::take(&mut model.nodes);
    let mut unfolded = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        if has_norm(model, &node)
            && let Some(channels) = channels(model, &node)
        {
            norms += 1;
            let (convolution, norm) = apart(model, node, channels);
            unfolded.extend([convolution, norm]);
            continue;
        }
        // Of convolutions the rule says nothing: the exporter gives a bias of zeros to those without one.
        if node.rewritten.contains("RemoveOptionalBiasFromGemm")
            && node.input(2).is_none()
            && let Some(channels) = channels(model, &node)
        {
            biases += 1;
            let bias = vector(model, &node, 1, "bias", channels);
            node.inputs.resize(2, None);
            node.inputs.push(Some(bias));
        }
        unfolded.push(node);
    }
    model.nodes = unfolded;
    let mut assumed = Vec::new();
    if norms > 0 {
        assumed.push(format!(
            "the exporter folded {norms} batch normalizations into convolutions: they count as separate layers"
        ));
    }
    if biases > 0 {
        assumed.push(format!(
            "the exporter left out {biases} biases of zeros: they are taken as parameters"
        ));
    }
    assumed
}

fn has_norm(model: &Model, node: &Node) -> bool {
    if node.operator != "Conv" {
        return false;
    }
    let is_computed =
        |at: usize| node.input(at).is_some_and(|name| model.name(name).starts_with("onnx::Conv_"));
    node.rewritten.contains("FuseBatchNormIntoConv") || (is_computed(1) && is_computed(2))
}

/// The number of results of a layer, one for each element of its bias.
fn channels(model: &Model, node: &Node) -> Option<i64> {
    let weight = &model.initializers.get(&node.input(1)?)?.fact;
    let is_first = match node.operator.as_str() {
        "Conv" => true,
        "Gemm" => node.int("transB", 0) == 1,
        _ => return None,
    };
    let at = usize::from(!is_first);
    weight.dims.get(at).copied()
}

/// A convolution and its normalization.
fn apart(model: &mut Model, mut convolution: Node, channels: i64) -> (Node, Node) {
    let between = model.invent(format!("{} of the convolution", convolution.name));
    let mut inputs = vec![Some(between)];
    for part in ["weight", "bias", "running_mean", "running_var"] {
        let name = vector(model, &convolution, 1, part, channels);
        inputs.push(Some(name));
    }
    let norm = Node {
        operator: "BatchNormalization".to_owned(),
        name: convolution.name.clone(),
        inputs,
        outputs: std::mem::replace(&mut convolution.outputs, vec![Some(between)]),
        modules: convolution.modules.clone(),
        ..Node::default()
    };
    // The bias is the normalization's, unless it has the name of one that the convolution had.
    let is_own = convolution.input(2).is_some_and(|name| {
        let name = model.name(name);
        name.ends_with(".bias") && !name.starts_with("onnx::")
    });
    if !is_own {
        convolution.inputs.truncate(2);
    }
    (convolution, norm)
}

/// A vector of weights beside those that a node has, in a module of its own.
fn vector(model: &mut Model, node: &Node, beside: usize, part: &str, size: i64) -> Name {
    let weight = node.input(beside);
    let dtype =
        weight.and_then(|name| model.initializers.get(&name)).map_or(DType::F32, |i| i.fact.dtype);
    let path = weight.map_or("", |name| model.name(name)).trim_end_matches(".weight");
    let module = node.modules.last().map(|module| module.path.as_str());
    let path = module.filter(|_| path.starts_with("onnx::")).unwrap_or(path);
    let path = if part == "bias" && node.operator == "Gemm" {
        path.to_owned()
    } else {
        format!("{path}_norm")
    };
    let name = model.invent(format!("{path}.{part}"));
    let fact = Fact { dtype, dims: vec![size], known: None };
    model.initializers.insert(name, Initializer { fact, kind: InitializerKind::Weight });
    name
}
