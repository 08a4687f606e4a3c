//! A file with names as numbers: nodes, initializers without their data, and what the file says about sizes.

mod tensor;

use super::budget;
use super::fact::{Fact, LARGEST};
use super::proto;
use super::scope;
use crate::dtype::DType;
use crate::error::GraphError;
use crate::graph::ModuleFrame;
use prost::Message as _;
use prost::bytes::Bytes;
use std::collections::BTreeMap;

/// Subgraphs within subgraphs, deeper than this, are refused.
const DEEPEST: usize = 16;

/// The name of a value, as a number.
pub(super) type Name = usize;

/// A model of ONNX, without the data of its weights.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Model {
    pub(super) names: Vec<String>,
    pub(super) inputs: Vec<DeclaredValue>,
    pub(super) outputs: Vec<Name>,
    pub(super) nodes: Vec<Node>,
    pub(super) initializers: BTreeMap<Name, Initializer>,
    /// Sizes of values between, where the file says them.
    pub(super) declared: BTreeMap<Name, DeclaredValue>,
    /// The version of the default operator set.
    pub(super) opset: i64,
    /// The program that wrote the file.
    pub(super) producer: String,
    /// What was assumed where the file does not say.
    pub(super) assumptions: Vec<String>,
}

/// A tensor that the file has.
#[derive(Clone, Debug)]
pub(super) struct Initializer {
    pub(super) fact: Fact,
    pub(super) kind: InitializerKind,
}

/// What a tensor of the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InitializerKind {
    /// A parameter, if it is of floating point; else a buffer.
    Weight,
    /// A buffer.
    Buffer,
    /// A constant of the model's code.
    Code,
}

/// What the file says about a value.
#[derive(Clone, Debug)]
pub(super) struct DeclaredValue {
    pub(super) name: Name,
    pub(super) dtype: Option<DType>,
    pub(super) dims: Option<Vec<Dimension>>,
}

/// A size of a declared value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    Fixed(i64),
    Symbol(String),
    /// Without a value and a name.
    Open,
}

/// A call of an operator.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The operator with its domain, which is empty for ONNX's own.
    pub(super) operator: String,
    pub(super) name: String,
    pub(super) inputs: Vec<Option<Name>>,
    pub(super) outputs: Vec<Option<Name>>,
    pub(super) attributes: BTreeMap<String, Attribute>,
    /// Graphs that the operator runs.
    pub(super) bodies: BTreeMap<String, Body>,
    pub(super) modules: Vec<ModuleFrame>,
    /// Whether it writes into its first operand.
    pub(super) in_place: bool,
    /// The operator of PyTorch that it is part of, if the file says it.
    pub(super) origin: Option<String>,
    /// Rules of the exporter's optimizer that made this node of others.
    pub(super) rewritten: String,
}

/// A graph of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    pub(super) nodes: Vec<Node>,
    pub(super) outputs: Vec<Name>,
}

/// A constant of a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f64),
    Floats(Vec<f64>),
    Text(String),
    Tensor(Fact),
}

impl Node {
    pub(super) fn input(&self, at: usize) -> Option<Name> {
        self.inputs.get(at).copied().flatten()
    }

    pub(super) fn output(&self) -> Option<Name> {
        self.outputs.first().copied().flatten()
    }

    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        match self.attributes.get(name) {
            Some(Attribute::Int(value)) => (*value).clamp(-LARGEST, LARGEST),
            _ => default,
        }
    }

    pub(super) fn float(&self, name: &str, default: f64) -> f64 {
        match self.attributes.get(name) {
            Some(Attribute::Float(value)) => *value,
            _ => default,
        }
    }

    pub(super) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attributes.get(name)? {
            Attribute::Ints(values) => {
                Some(values.iter().map(|v| (*v).clamp(-LARGEST, LARGEST)).collect())
            }
            Attribute::Int(value) => Some(vec![*value]),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.attributes.get(name)? {
            Attribute::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&Fact> {
        match self.attributes.get(name)? {
            Attribute::Tensor(fact) => Some(fact),
            _ => None,
        }
    }

    /// How a message names it.
    pub(super) fn title(&self) -> String {
        match self.name.as_str() {
            "" => format!("`{}`", self.operator),
            name => format!("`{}` (node `{name}`)", self.operator),
        }
    }
}

impl Model {
    /// Decodes a file.
    pub(super) fn decoded(bytes: Vec<u8>) -> Result<Self, GraphError> {
        if !budget::is_within(&bytes) {
            return Err(damaged(format!(
                "it has more than {} nodes, tensors and names",
                budget::MAX_MESSAGES
            )));
        }
        let file = proto::ModelProto::decode(Bytes::from(bytes))
            .map_err(|error| damaged(error.to_string()))?;
        let graph = file.graph.ok_or_else(|| damaged("it has no graph"))?;
        let versions = file
            .opset_import
            .iter()
            .filter(|set| matches!(set.domain.as_deref().unwrap_or_default(), "" | "ai.onnx"));
        let opset = versions.filter_map(|set| set.version).max().unwrap_or(1);
        let mut reader = Reader::default();
        for tensor in &graph.initializer {
            reader.initializer(tensor)?;
        }
        let mut inputs = Vec::new();
        for value in &graph.input {
            let declared = reader.declared(value);
            // Files of before 2019 list initializers among the inputs.
            if !reader.initializers.contains_key(&declared.name) {
                inputs.push(declared);
            }
        }
        let mut declared = BTreeMap::new();
        for value in graph.value_info.iter().chain(&graph.output) {
            let kind = scope::kind(&value.metadata_props);
            let value = reader.declared(value);
            if let (Some(kind), Some(known)) = (kind, reader.initializers.get_mut(&value.name)) {
                known.kind = kind;
            }
            if value.dims.is_some() {
                declared.insert(value.name, value);
            }
        }
        let body = reader.body(graph, 0)?;
        if body.outputs.is_empty() {
            return Err(damaged("it has no outputs"));
        }
        let version = file.producer_version.unwrap_or_default();
        let producer = format!("{} {version}", file.producer_name.unwrap_or_default());
        Ok(Self {
            names: reader.names,
            inputs,
            outputs: body.outputs,
            nodes: body.nodes,
            initializers: reader.initializers,
            declared,
            opset,
            producer: producer.trim().to_owned(),
            assumptions: Vec::new(),
        })
    }

    pub(super) fn name(&self, name: Name) -> &str {
        self.names.get(name).map_or("", String::as_str)
    }

    /// A name that the file does not have.
    pub(super) fn invent(&mut self, name: String) -> Name {
        self.names.push(name);
        self.names.len() - 1
    }
}

fn damaged(what: impl Into<String>) -> GraphError {
    GraphError::Format(what.into())
}

#[derive(Default)]
struct Reader {
    ids: BTreeMap<String, Name>,
    names: Vec<String>,
    initializers: BTreeMap<Name, Initializer>,
}

impl Reader {
    fn name(&mut self, name: &str) -> Name {
        if let Some(&known) = self.ids.get(name) {
            return known;
        }
        let new = self.names.len();
        self.ids.insert(name.to_owned(), new);
        self.names.push(name.to_owned());
        new
    }

    /// The name of an argument; an empty one leaves the argument out.
    fn argument(&mut self, name: &str) -> Option<Name> {
        (!name.is_empty()).then(|| self.name(name))
    }

    fn initializer(&mut self, tensor: &proto::TensorProto) -> Result<(), GraphError> {
        let text = tensor.name.as_deref().unwrap_or_default();
        let fact = tensor::fact(tensor).map_err(|error| of_tensor(text, &error))?;
        let name = self.name(text);
        self.initializers.insert(name, Initializer { fact, kind: InitializerKind::Weight });
        Ok(())
    }

    fn declared(&mut self, value: &proto::ValueInfoProto) -> DeclaredValue {
        let name = self.name(value.name.as_deref().unwrap_or_default());
        let tensor = value.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
        let dimension = |dim: &proto::DimensionProto| match (dim.dim_value, &dim.dim_param) {
            (Some(size), _) if size > 0 => Dimension::Fixed(size),
            (_, Some(symbol)) if !symbol.is_empty() => Dimension::Symbol(symbol.clone()),
            _ => Dimension::Open,
        };
        DeclaredValue {
            name,
            dtype: tensor.and_then(|t| DType::of_onnx(t.elem_type.unwrap_or(0))),
            dims: tensor
                .and_then(|t| t.shape.as_ref())
                .map(|shape| shape.dim.iter().map(dimension).collect()),
        }
    }

    fn body(&mut self, graph: proto::GraphProto, depth: usize) -> Result<Body, GraphError> {
        if depth > DEEPEST {
            return Err(damaged("graphs within graphs without end"));
        }
        let mut body = Body::default();
        for node in graph.node {
            if let Some(node) = self.node(node, depth)? {
                body.nodes.push(node);
            }
        }
        if depth > 0 {
            for tensor in &graph.initializer {
                self.initializer(tensor)?;
            }
        }
        for output in &graph.output {
            body.outputs.push(self.name(output.name.as_deref().unwrap_or_default()));
        }
        Ok(body)
    }

    /// A node; a constant becomes an initializer.
    fn node(&mut self, node: proto::NodeProto, depth: usize) -> Result<Option<Node>, GraphError> {
        let operator = node.op_type.unwrap_or_default();
        let operator = match node.domain.as_deref().unwrap_or_default() {
            "" | "ai.onnx" => operator,
            domain => format!("{domain}::{operator}"),
        };
        let name = node.name.unwrap_or_default();
        let mut read = Node {
            modules: scope::modules(&name, &node.metadata_props),
            origin: scope::origin(&node.metadata_props),
            rewritten: scope::property(&node.metadata_props, "pkg.onnxscript.rewriter.rule_name")
                .unwrap_or_default()
                .to_owned(),
            operator,
            name,
            ..Node::default()
        };
        for input in &node.input {
            let input = self.argument(input);
            read.inputs.push(input);
        }
        for output in &node.output {
            let output = self.argument(output);
            read.outputs.push(output);
        }
        for attribute in node.attribute {
            let key = attribute.name.clone().unwrap_or_default();
            if let Some(graph) = attribute.g {
                let body = self.body(graph, depth + 1)?;
                read.bodies.insert(key, body);
                continue;
            }
            let value = match attribute {
                proto::AttributeProto { t: Some(tensor), .. } => Attribute::Tensor(
                    tensor::fact(&tensor).map_err(|error| of_tensor(&read.title(), &error))?,
                ),
                proto::AttributeProto { s: Some(text), .. } => {
                    Attribute::Text(String::from_utf8_lossy(&text).into_owned())
                }
                proto::AttributeProto { f: Some(float), .. } => Attribute::Float(float.into()),
                proto::AttributeProto { i: Some(int), .. } => Attribute::Int(int),
                proto::AttributeProto { ints, .. } if !ints.is_empty() => Attribute::Ints(ints),
                proto::AttributeProto { floats, .. } if !floats.is_empty() => {
                    Attribute::Floats(floats.into_iter().map(f64::from).collect())
                }
                _ => Attribute::Ints(Vec::new()),
            };
            read.attributes.insert(key, value);
        }
        if read.operator == "Constant"
            && let Some(output) = read.output()
        {
            let fact = tensor::constant(&read)
                .ok_or_else(|| damaged(format!("{} has no value that is read", read.title())))?;
            self.initializers.insert(output, Initializer { fact, kind: InitializerKind::Code });
            return Ok(None);
        }
        Ok(Some(read))
    }
}

fn of_tensor(name: &str, error: &GraphError) -> GraphError {
    damaged(format!("`{name}`: {error}"))
}
