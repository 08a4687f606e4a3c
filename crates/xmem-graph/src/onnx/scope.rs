//! The modules around a node, as the two exporters of PyTorch note them.

use super::model::InitializerKind;
use super::proto::StringStringEntryProto;
use crate::graph::ModuleFrame;

/// A property of a node.
pub(super) fn property<'p>(properties: &'p [StringStringEntryProto], key: &str) -> Option<&'p str> {
    properties.iter().find(|p| p.key.as_deref() == Some(key))?.value.as_deref()
}

/// The modules around a node, outermost first: the loop, the model, and what the file says is within.
pub(super) fn modules(name: &str, properties: &[StringStringEntryProto]) -> Vec<ModuleFrame> {
    let mut frames = vec![frame("", "Iteration")];
    frames.extend(within(name, properties));
    frames
}

fn frame(path: &str, class: &str) -> ModuleFrame {
    ModuleFrame { path: path.to_owned(), class: class.to_owned() }
}

fn within(name: &str, properties: &[StringStringEntryProto]) -> Vec<ModuleFrame> {
    let scopes = property(properties, "pkg.torch.onnx.name_scopes");
    let classes = property(properties, "pkg.torch.onnx.class_hierarchy");
    match (scopes, classes) {
        (Some(scopes), Some(classes)) => noted(scopes, classes),
        _ => named(name),
    }
}

/// The kind of an initializer, if the file says it: the exporter of torch.export notes what each of its inputs is, and its
/// optimizer of which values it computed a constant (torch/onnx/_internal/exporter/_core.py).
pub(super) fn kind(properties: &[StringStringEntryProto]) -> Option<InitializerKind> {
    match property(properties, "pkg.torch.export.graph_signature.InputSpec.kind") {
        Some("PARAMETER") => return Some(InitializerKind::Weight),
        Some("BUFFER") => return Some(InitializerKind::Buffer),
        Some("CONSTANT_TENSOR") => return Some(InitializerKind::Code),
        _ => {}
    }
    let sources = list(property(properties, "pkg.onnxscript.optimizer.folded_from")?);
    let is_weight = |name: &String| name.ends_with(".weight") || name.ends_with(".bias");
    let is_of_weights = sources.iter().any(is_weight);
    Some(if is_of_weights { InitializerKind::Weight } else { InitializerKind::Code })
}

/// The operator of PyTorch that a node is part of, if the file says it: `aten.silu.default`.
pub(super) fn origin(properties: &[StringStringEntryProto]) -> Option<String> {
    let classes = list(property(properties, "pkg.torch.onnx.class_hierarchy")?);
    classes.last().filter(|name| name.contains('.')).cloned()
}

/// The texts of a list of Python.
fn list(text: &str) -> Vec<String> {
    let inside = text.trim().trim_start_matches('[').trim_end_matches(']');
    let item = |item: &str| item.trim().trim_matches(['\'', '"']).to_owned();
    inside.split(", ").map(item).collect()
}

/// Lists of Python with the names and the classes, of which the last are the operator's own
/// (torch/onnx/_internal/exporter/_core.py, `_set_node_metadata`).
fn noted(scopes: &str, classes: &str) -> Vec<ModuleFrame> {
    let (mut scopes, classes) = (list(scopes), list(classes));
    scopes.pop();
    let class = |class: &String| class.rsplit('.').next().unwrap_or(class).to_owned();
    scopes
        .into_iter()
        .zip(&classes)
        .map(|(path, name)| ModuleFrame { path, class: class(name) })
        .collect()
}

/// `/layer1/layer1.0/conv1/Conv`: names of attributes, those in containers with the container's
/// (torch/onnx/_internal/torchscript_exporter/onnx_proto_utils.py and `torch/csrc/jit/passes/onnx/naming.cpp`).
fn named(name: &str) -> Vec<ModuleFrame> {
    let mut frames = vec![frame("", "Module")];
    let Some(name) = name.strip_prefix('/') else { return frames };
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    let mut before = "";
    for part in parts {
        let above = frames.last().map_or("", |frame| frame.path.as_str());
        let is_inside = part.strip_prefix(before).is_some_and(|rest| rest.starts_with('.'));
        let own = match part.strip_prefix(before) {
            Some(rest) if is_inside && !before.is_empty() => rest.trim_start_matches('.'),
            _ => part,
        };
        let path = if above.is_empty() { own.to_owned() } else { format!("{above}.{own}") };
        frames.push(frame(&path, "Module"));
        before = part;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::{InitializerKind, StringStringEntryProto, kind, modules};

    fn property(key: &str, value: &str) -> StringStringEntryProto {
        StringStringEntryProto { key: Some(format!("pkg.{key}")), value: Some(value.to_owned()) }
    }

    #[test]
    fn the_exporter_notes_what_an_initializer_is() {
        let (input, folded) =
            ("torch.export.graph_signature.InputSpec.kind", "onnxscript.optimizer.folded_from");
        for (key, value, expected) in [
            (input, "PARAMETER", Some(InitializerKind::Weight)),
            (input, "BUFFER", Some(InitializerKind::Buffer)),
            (folded, "['arange', 'wpe.weight']", Some(InitializerKind::Weight)),
            (folded, "['arange', 'inv_freq']", Some(InitializerKind::Code)),
            ("another", "PARAMETER", None),
        ] {
            assert_eq!(kind(&[property(key, value)]), expected, "{value}");
        }
    }

    #[test]
    fn modules_are_read_from_names_and_from_metadata() {
        let paths = |name: &str| -> Vec<String> {
            modules(name, &[]).into_iter().skip(1).map(|frame| frame.path).collect()
        };
        assert_eq!(paths("node_conv"), [""]);
        assert_eq!(paths("/Add"), [""]);
        assert_eq!(
            paths("/layer1/layer1.0/conv1/Conv"),
            ["", "layer1", "layer1.0", "layer1.0.conv1"]
        );
        assert_eq!(
            paths("/encoder/layer_0/mlp/mlp.0/MatMul"),
            ["", "encoder", "encoder.layer_0", "encoder.layer_0.mlp", "encoder.layer_0.mlp.0"]
        );
        let noted = [
            property("torch.onnx.name_scopes", "['', 'layer1', 'layer1.0', 'conv2d']"),
            property(
                "torch.onnx.class_hierarchy",
                "['a.ResNet', 'torch.nn.Sequential', 'a.Block', 'aten.conv2d.default']",
            ),
        ];
        let frames = modules("node_Conv_1", &noted);
        let frames: Vec<(&str, &str)> =
            frames.iter().map(|f| (f.path.as_str(), f.class.as_str())).collect();
        assert_eq!(frames[0], ("", "Iteration"));
        assert_eq!(frames[1..], [("", "ResNet"), ("layer1", "Sequential"), ("layer1.0", "Block")]);
    }
}
