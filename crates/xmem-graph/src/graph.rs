//! The graph of a model: operators in the order in which they run, with the sizes of every value.

use crate::dtype::DType;
use crate::expression::Expression;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model's forward computation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Graph {
    /// What goes in, in order.
    pub inputs: Vec<Input>,
    /// What is computed.
    pub body: Arc<Body>,
    /// Sizes that are open, with the value at which the graph was made.
    pub symbols: BTreeMap<String, i64>,
    /// The release of PyTorch that made the graph.
    pub torch: Option<String>,
    /// What was assumed where the file does not say what PyTorch does, a sentence each.
    pub assumptions: Vec<String>,
}

/// A sequence of operators: the whole graph, or one that an operator runs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Body {
    /// Names and sizes of the values, by [`ValueId`].
    pub values: Vec<ValueInfo>,
    /// Values that are given.
    pub inputs: Vec<ValueId>,
    /// The operators.
    pub nodes: Vec<Operation>,
    /// Values that are returned.
    pub outputs: Vec<Argument>,
    /// The most that sizes can be which follow from values, by symbol, where the model says it.
    pub most: BTreeMap<String, i64>,
}

/// A value of a [`Body`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

/// What is known of a value.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ValueInfo {
    /// The name in the file.
    pub name: String,
    /// Sizes and type, of a tensor.
    pub tensor: Option<TensorInfo>,
    /// Of a number that follows from sizes.
    pub number: Option<Expression>,
}

/// Sizes and type of a tensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// Sizes, outermost first.
    pub dims: Vec<Expression>,
    /// Strides in elements.
    pub strides: Vec<Expression>,
    /// Type of the elements.
    pub dtype: DType,
    /// True if gradients of it are asked for.
    pub requires_grad: bool,
}

/// An input of the graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Input {
    /// Its value.
    pub value: ValueId,
    /// What it is.
    pub role: InputRole,
    /// The input that it is another name of: a tied weight, of which the operators use one name.
    pub same_as: Option<usize>,
}

/// What an input is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputRole {
    /// A parameter, by its path in the model.
    Parameter(String),
    /// A buffer, by its path in the model.
    Buffer(String),
    /// A constant of the model's code.
    Constant(String),
    /// Part of the batch.
    Batch,
}

impl InputRole {
    /// The path in the model.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Parameter(path) | Self::Buffer(path) | Self::Constant(path) => Some(path),
            Self::Batch => None,
        }
    }
}

/// One call of an operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Operation {
    /// `aten.conv2d.default`.
    pub target: String,
    /// Arguments by name, in the order of the operator's schema; those with defaults may be left out.
    pub arguments: Vec<(String, Argument)>,
    /// Results; a list of tensors is one.
    pub results: Vec<ResultValue>,
    /// Modules around it, outermost first.
    pub modules: Vec<ModuleFrame>,
    /// Contexts that it runs in, outermost first.
    pub contexts: Vec<Context>,
}

/// A `with` block of the model's code that changes how operators run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// Tells blocks apart.
    pub id: u32,
    /// What it changes.
    pub kind: ContextKind,
}

/// What a [`Context`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContextKind {
    /// `torch.autocast` to a type, or off.
    Autocast(Option<DType>),
    /// `torch.set_grad_enabled`.
    Gradients(bool),
}

/// A result of an operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ResultValue {
    /// One value; `None` if it has no name.
    One(Option<ValueId>),
    /// A list.
    Many(Vec<Option<ValueId>>),
}

/// A module whose `forward` is running.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleFrame {
    /// Path in the model; empty for the model itself.
    pub path: String,
    /// Class without its Python module.
    pub class: String,
}

/// An argument of an operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Argument {
    /// A value computed before.
    Value(ValueId),
    /// A list of values and gaps.
    Values(Vec<Option<ValueId>>),
    /// A whole number.
    Int(i64),
    /// Whole numbers, some of which follow from sizes.
    Ints(Vec<IntArgument>),
    /// A number.
    Float(f64),
    /// Numbers.
    Floats(Vec<f64>),
    /// A truth value.
    Bool(bool),
    /// Truth values.
    Bools(Vec<bool>),
    /// A word.
    Text(String),
    /// A type of elements.
    DType(DType),
    /// Another graph.
    Body(Arc<Body>),
    /// Nothing, or what says nothing about memory: a device, a layout.
    None,
}

/// A whole number in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IntArgument {
    /// As it stands.
    Known(i64),
    /// A value of the graph.
    Value(ValueId),
}

impl Graph {
    /// The name of the symbol that is the first size of the batch, if it is open.
    #[must_use]
    pub fn batch_symbol(&self) -> Option<&str> {
        self.batch_dims().filter_map(|dims| dims.first()?.symbol()).next()
    }

    /// The name of the symbol that is the second size of the first input of the batch that has one: the length
    /// of sequences.
    #[must_use]
    pub fn length_symbol(&self) -> Option<&str> {
        let batch = self.batch_symbol();
        self.batch_dims().filter_map(|dims| dims.get(1)?.symbol()).find(|name| Some(*name) != batch)
    }

    /// Returns whether the graph is that of a script's iteration, which calls its models, as `xmem export` writes it.
    pub(crate) fn is_iteration(&self) -> bool {
        let outermost = self.body.nodes.iter().find_map(|node| node.modules.first());
        outermost.is_some_and(|frame| frame.path.is_empty() && frame.class == "Iteration")
    }

    fn batch_dims(&self) -> impl Iterator<Item = &[Expression]> {
        let batch = self.inputs.iter().filter(|i| i.role == InputRole::Batch);
        batch.filter_map(|i| {
            let info = self.body.values.get(i.value.0 as usize)?.tensor.as_ref()?;
            Some(info.dims.as_slice())
        })
    }
}

impl Argument {
    /// The values that it names.
    pub(crate) fn values(&self) -> Vec<ValueId> {
        match self {
            Self::Value(id) => vec![*id],
            Self::Values(ids) => ids.iter().flatten().copied().collect(),
            Self::Ints(ints) => ints
                .iter()
                .filter_map(|int| match int {
                    IntArgument::Value(id) => Some(*id),
                    IntArgument::Known(_) => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

impl Operation {
    /// The values that it makes.
    pub(crate) fn made(&self) -> Vec<ValueId> {
        let ids = self.results.iter().flat_map(|result| match result {
            ResultValue::One(id) => id.iter().copied().collect::<Vec<_>>(),
            ResultValue::Many(ids) => ids.iter().flatten().copied().collect(),
        });
        ids.collect()
    }

    /// The values that it is given.
    pub(crate) fn used(&self) -> Vec<ValueId> {
        self.arguments.iter().flat_map(|(_, argument)| argument.values()).collect()
    }
}
