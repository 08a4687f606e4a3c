//! A model of ONNX as operators of ATen, at given sizes: each node is the calls that PyTorch makes for it, and
//! arithmetic of shapes is computed.

mod creation;
mod elementwise;
mod indexing;
mod inputs;
mod layers;
mod normalization;
mod pooling;
mod products;
mod reductions;
mod views;

use super::fact::{Fact, Known};
use super::fold;
use super::model::{Dimension, InitializerKind, Model, Name, Node};
use crate::dtype::DType;
use crate::error::GraphError;
use crate::expression::Expression;
use crate::graph::{
    Argument, Body, Graph, Input, InputRole, IntArgument, Operation, ResultValue, TensorInfo,
    ValueId, ValueInfo,
};
use crate::training::Workload;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More calls are refused.
const MAX_OPERATIONS: usize = 1 << 20;

/// Runs a node of a group of operators; `false` if it is none of them.
type Group = fn(&mut Lowering<'_>, &Node) -> Result<bool, GraphError>;

const GROUPS: &[Group] = &[
    layers::lower,
    products::lower,
    normalization::lower,
    pooling::lower,
    elementwise::lower,
    views::lower,
    indexing::lower,
    reductions::lower,
    creation::lower,
];

/// A model on its way to a graph.
pub(super) struct Lowering<'m> {
    model: &'m Model,
    /// Layers behave as in training.
    trains: bool,
    /// Sizes that the file names.
    symbols: BTreeMap<String, i64>,
    /// Whether sizes that the file says are those of this batch.
    is_declared_size: bool,
    entries: Vec<Option<Entry>>,
    values: Vec<ValueInfo>,
    operations: Vec<Operation>,
    inputs: Vec<Input>,
    /// Weights by their name and, of vectors, the node that uses them.
    weights: BTreeMap<(Name, Option<usize>), ValueId>,
    /// The number of nodes that have run.
    at: usize,
}

/// A value of the model.
#[derive(Clone, Debug)]
struct Entry {
    fact: Fact,
    /// The value in the graph; constants have one when an operator needs them as tensors.
    id: Option<ValueId>,
}

/// Returns the graph of a model, at the sizes of a workload.
pub(super) fn lowered(model: &Model, workload: &Workload) -> Result<Graph, GraphError> {
    let sizes = inputs::sizes(model, workload)?;
    let mut lowering = Lowering {
        model,
        trains: workload.training.is_some(),
        symbols: sizes.symbols,
        is_declared_size: sizes.is_declared,
        entries: vec![None; model.names.len()],
        values: Vec::new(),
        operations: Vec::new(),
        inputs: Vec::new(),
        weights: BTreeMap::new(),
        at: 0,
    };
    for (&name, initializer) in &model.initializers {
        lowering.entries[name] = Some(Entry { fact: initializer.fact.clone(), id: None });
    }
    for (value, fact) in model.inputs.iter().zip(sizes.inputs) {
        let id = lowering.add_value(model.name(value.name), &fact, false);
        lowering.inputs.push(Input { value: id, role: InputRole::Batch, same_as: None });
        lowering.entries[value.name] = Some(Entry { fact, id: Some(id) });
    }
    let live = live(model);
    for (at, node) in model.nodes.iter().enumerate() {
        if live.contains(&at) {
            lowering.node(node, 0)?;
        }
    }
    let mut outputs = Vec::new();
    for &name in &model.outputs {
        outputs.push(Argument::Value(lowering.value(Some(name))?));
    }
    let inputs = lowering.inputs.iter().map(|input| input.value).collect();
    let most = BTreeMap::new();
    let body = Body { values: lowering.values, inputs, nodes: lowering.operations, outputs, most };
    Ok(Graph {
        inputs: lowering.inputs,
        body: Arc::new(body),
        symbols: BTreeMap::new(),
        torch: None,
        assumptions: assumptions(model, workload, sizes.assumptions),
    })
}

/// What was assumed where the file does not say it.
fn assumptions(model: &Model, workload: &Workload, of_sizes: Vec<String>) -> Vec<String> {
    let has = |operator: &str| model.nodes.iter().any(|node| node.operator == operator);
    let by = if model.producer.is_empty() { "" } else { " that " };
    let wrote = if model.producer.is_empty() { "" } else { " wrote" };
    let mut all = vec![format!(
        "from a model of ONNX{by}{}{wrote}: which operators write in place is not in the file, and initializers of \
         floating point are taken as parameters",
        model.producer
    )];
    all.extend(of_sizes);
    all.extend(model.assumptions.iter().cloned());
    if workload.training.is_some() && !has("Dropout") {
        all.push(
            "the file has no dropout: exporters for inference leave it out, with what it keeps for the backward pass"
                .to_owned(),
        );
    }
    let has_bias = model.nodes.iter().any(|n| n.operator == "Conv" && n.input(2).is_some());
    if workload.training.is_some() && has_bias && !has("BatchNormalization") {
        all.push(
            "the file has convolutions with biases and no batch normalization: if the model has some, the exporter \
             folded them, with what they keep"
                .to_owned(),
        );
    }
    all
}

/// Nodes whose results are used.
fn live(model: &Model) -> BTreeSet<usize> {
    let mut wanted: BTreeSet<Name> = model.outputs.iter().copied().collect();
    let mut live = BTreeSet::new();
    for (at, node) in model.nodes.iter().enumerate().rev() {
        if node.outputs.iter().flatten().any(|name| wanted.contains(name)) {
            live.insert(at);
            want(node, &mut wanted);
        }
    }
    live
}

fn want(node: &Node, wanted: &mut BTreeSet<Name>) {
    wanted.extend(node.inputs.iter().flatten());
    for body in node.bodies.values() {
        wanted.extend(&body.outputs);
        body.nodes.iter().for_each(|node| want(node, wanted));
    }
}

impl Lowering<'_> {
    fn node(&mut self, node: &Node, depth: usize) -> Result<(), GraphError> {
        self.at += 1;
        if self.operations.len() > MAX_OPERATIONS {
            return Err(GraphError::Format(format!("it has more than {MAX_OPERATIONS} operators")));
        }
        for name in node.inputs.iter().flatten() {
            self.known_fact(*name)?;
        }
        let facts: Vec<Option<&Fact>> =
            node.inputs.iter().map(|name| Some(&self.entries[(*name)?].as_ref()?.fact)).collect();
        if let Some(folded) = fold::fold(node, &facts) {
            for (name, fact) in node.outputs.iter().zip(folded) {
                if let Some(name) = name {
                    self.entries[*name] = Some(Entry { fact, id: None });
                }
            }
            return Ok(());
        }
        if node.operator == "If" && self.branch(node, depth)? {
            return Ok(());
        }
        for group in GROUPS {
            match group(self, node) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => return Err(located(error, node, self.is_declared_size)),
            }
        }
        self.unknown(node)
    }

    /// The branch that a constant condition takes; `false` if the condition is none.
    fn branch(&mut self, node: &Node, depth: usize) -> Result<bool, GraphError> {
        let condition = self.fact(node.input(0))?.scalar();
        let Some(condition) = condition.filter(|_| depth < 16) else { return Ok(false) };
        let name = if condition == 0.0 { "else_branch" } else { "then_branch" };
        let Some(body) = node.bodies.get(name) else { return Ok(false) };
        for inner in &body.nodes {
            self.node(inner, depth + 1)?;
        }
        for (own, inner) in node.outputs.iter().zip(&body.outputs) {
            if let Some(own) = own {
                self.entries[*own] = Some(self.known_entry(*inner)?.clone());
            }
        }
        Ok(true)
    }

    /// An operator without a definition: results of the sizes that the file says.
    fn unknown(&mut self, node: &Node) -> Result<(), GraphError> {
        let mut arguments = Vec::new();
        for (at, name) in node.inputs.iter().enumerate() {
            if let Some(name) = name
                && self.fact(Some(*name))?.elements() != 1
            {
                let value = self.value(Some(*name))?;
                arguments.push((at.to_string(), Argument::Value(value)));
            }
        }
        let mut facts = Vec::new();
        for name in &node.outputs {
            let Some(name) = name else { continue };
            let fact = self.declared(*name).ok_or_else(|| GraphError::Size {
                value: self.model.name(*name).to_owned(),
                reason: format!(
                    "{} has no definition here, and the file does not say the sizes of its results",
                    node.title()
                ),
            })?;
            facts.push((*name, fact));
        }
        let target = format!("onnx::{}", node.operator);
        let results: Vec<Fact> = facts.iter().map(|(_, fact)| fact.clone()).collect();
        let ids = self.call(node, &target, arguments, &results);
        for ((name, fact), id) in facts.into_iter().zip(ids) {
            self.entries[name] = Some(Entry { fact, id: Some(id) });
        }
        Ok(())
    }

    /// Sizes and type that the file says of a value, at these sizes of the batch.
    fn declared(&self, name: Name) -> Option<Fact> {
        let declared = self.model.declared.get(&name)?;
        let size = |dim: &Dimension| match dim {
            Dimension::Fixed(size) => Some(*size),
            Dimension::Symbol(symbol) => self.symbols.get(symbol).copied(),
            Dimension::Open => None,
        };
        let dims = declared.dims.as_ref()?.iter().map(size).collect::<Option<_>>()?;
        Fact::of(declared.dtype?, dims).ok()
    }

    /// How a message names the first result of a node.
    fn title_of_result(&self, node: &Node) -> String {
        node.output().map_or("", |name| self.model.name(name)).to_owned()
    }

    fn known_entry(&self, name: Name) -> Result<&Entry, GraphError> {
        self.entries.get(name).and_then(Option::as_ref).ok_or_else(|| {
            GraphError::Format(format!(
                "`{}` is used before it is computed: nodes must be in the order in which they run",
                self.model.name(name)
            ))
        })
    }

    fn known_fact(&self, name: Name) -> Result<&Fact, GraphError> {
        Ok(&self.known_entry(name)?.fact)
    }

    /// What is known of an argument.
    fn fact(&self, name: Option<Name>) -> Result<&Fact, GraphError> {
        self.known_fact(
            name.ok_or_else(|| GraphError::Format("an argument is missing".to_owned()))?,
        )
    }

    /// The whole numbers of an argument, or of the attribute that older operator sets have in its place.
    fn ints(
        &self,
        node: &Node,
        at: usize,
        attribute: &str,
    ) -> Result<Option<Vec<i64>>, GraphError> {
        let Some(name) = node.input(at) else { return Ok(node.ints(attribute)) };
        match self.known_fact(name)?.known_ints() {
            Some(ints) => Ok(Some(ints.to_vec())),
            None => Err(GraphError::Size {
                value: self.model.name(name).to_owned(),
                reason: format!("{} needs its values, which are not computed", node.title()),
            }),
        }
    }

    /// An argument as a tensor of the graph.
    fn value(&mut self, name: Option<Name>) -> Result<ValueId, GraphError> {
        let fact = self.fact(name)?.clone();
        let name = name.unwrap_or_default();
        if let Some(id) = self.entries[name].as_ref().and_then(|entry| entry.id) {
            return Ok(id);
        }
        if let Some(initializer) = self.model.initializers.get(&name) {
            return Ok(match initializer.kind {
                InitializerKind::Code => self.add_input(name, None, &fact, InputRole::Constant),
                InitializerKind::Weight if fact.dtype.is_floating_point() => {
                    self.parameter(name, None, &fact.dims)
                }
                _ => self.add_input(name, None, &fact, InputRole::Buffer),
            });
        }
        let id = self.constant(name, &fact);
        if let Some(entry) = &mut self.entries[name] {
            entry.id = Some(id);
        }
        Ok(id)
    }

    /// A constant that follows from sizes, as a tensor: PyTorch's code made it by an operator.
    fn constant(&mut self, name: Name, fact: &Fact) -> ValueId {
        let id = self.add_value(self.model.name(name), fact, false);
        let size = ("size".to_owned(), numbers(&fact.dims));
        let is_row = fact.rank() == 1 && fact.elements() > 1;
        self.operations.push(Operation {
            target: if is_row { "aten.arange.start" } else { "aten.full.default" }.to_owned(),
            arguments: vec![size],
            results: vec![ResultValue::One(Some(id))],
            modules: Vec::new(),
            contexts: Vec::new(),
        });
        id
    }

    /// A weight that is trained, in the sizes that PyTorch's layer has it in.
    fn parameter(&mut self, name: Name, path: Option<String>, dims: &[i64]) -> ValueId {
        let dtype = self.model.initializers.get(&name).map_or(DType::F32, |i| i.fact.dtype);
        // Exporters write vectors once that are equal, as those of a new model are: each layer has its own.
        let user = (dims.len() == 1).then_some(self.at);
        let fact = Fact { dtype, dims: dims.to_vec(), known: None };
        self.add_named(path, (name, user), &fact, InputRole::Parameter)
    }

    fn buffer(&mut self, name: Name) -> Result<ValueId, GraphError> {
        let fact = Fact { known: None, ..self.known_fact(name)?.clone() };
        Ok(self.add_input(name, Some(self.at), &fact, InputRole::Buffer))
    }

    /// An input that is part of the model.
    fn add_input(
        &mut self,
        name: Name,
        user: Option<usize>,
        fact: &Fact,
        role: fn(String) -> InputRole,
    ) -> ValueId {
        self.add_named(None, (name, user), fact, role)
    }

    fn add_named(
        &mut self,
        path: Option<String>,
        key: (Name, Option<usize>),
        fact: &Fact,
        role: fn(String) -> InputRole,
    ) -> ValueId {
        if let Some(&known) = self.weights.get(&key) {
            return known;
        }
        let path = path.unwrap_or_else(|| self.model.name(key.0).to_owned());
        let is_taken = self.inputs.iter().any(|input| input.role.path() == Some(&path));
        let path = if is_taken { format!("{path}_{}", self.inputs.len()) } else { path };
        let id =
            self.add_value(&path, fact, matches!(role(String::new()), InputRole::Parameter(_)));
        self.inputs.push(Input { value: id, role: role(path), same_as: None });
        self.weights.insert(key, id);
        id
    }

    fn add_value(&mut self, name: &str, fact: &Fact, requires_grad: bool) -> ValueId {
        let id = ValueId(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        let tensor = TensorInfo {
            dims: fact.dims.iter().map(|d| Expression::Number(*d)).collect(),
            strides: Vec::new(),
            dtype: fact.dtype,
            requires_grad: requires_grad && fact.dtype.is_differentiable(),
        };
        self.values.push(ValueInfo { name: name.to_owned(), tensor: Some(tensor), number: None });
        id
    }

    /// A call of an operator of ATen, with the values of its results.
    fn call(
        &mut self,
        node: &Node,
        target: &str,
        arguments: Vec<(String, Argument)>,
        results: &[Fact],
    ) -> Vec<ValueId> {
        let ids: Vec<ValueId> =
            results.iter().map(|fact| self.add_value(&node.name, fact, false)).collect();
        self.operations.push(Operation {
            target: target.to_owned(),
            arguments,
            results: ids.iter().map(|id| ResultValue::One(Some(*id))).collect(),
            modules: node.modules.clone(),
            contexts: Vec::new(),
        });
        ids
    }

    /// A call whose result another call of the same node uses.
    fn step(
        &mut self,
        node: &Node,
        target: &str,
        arguments: &[(&str, Argument)],
        result: &Fact,
    ) -> ValueId {
        let arguments = named(arguments);
        self.call(node, target, arguments, std::slice::from_ref(result))[0]
    }

    /// A call whose result is the first of the node.
    fn result(
        &mut self,
        node: &Node,
        target: &str,
        arguments: &[(&str, Argument)],
        fact: Fact,
    ) -> Result<bool, GraphError> {
        self.results(node, target, arguments, vec![fact])
    }

    /// A call whose results are the node's.
    fn results(
        &mut self,
        node: &Node,
        target: &str,
        arguments: &[(&str, Argument)],
        facts: Vec<Fact>,
    ) -> Result<bool, GraphError> {
        let arguments = named(arguments);
        let ids = self.call(node, target, arguments, &facts);
        self.bind_results(node, facts, ids);
        Ok(true)
    }

    fn bind_results(&mut self, node: &Node, facts: Vec<Fact>, ids: Vec<ValueId>) {
        for ((name, fact), id) in node.outputs.iter().zip(facts).zip(ids) {
            if let Some(name) = name {
                self.bind(*name, fact, id);
            }
        }
    }

    /// A list of results is one value of an operator.
    fn listed(
        &mut self,
        node: &Node,
        target: &str,
        arguments: &[(&str, Argument)],
        facts: Vec<Fact>,
    ) -> Result<bool, GraphError> {
        let arguments = named(arguments);
        let ids = self.call(node, target, arguments, &facts);
        if let Some(operation) = self.operations.last_mut() {
            operation.results = vec![ResultValue::Many(ids.iter().copied().map(Some).collect())];
        }
        self.bind_results(node, facts, ids);
        Ok(true)
    }

    /// Gives a value of the model its value in the graph. Sizes that the file says are those that the run is
    /// checked against.
    fn bind(&mut self, name: Name, fact: Fact, id: ValueId) {
        if self.is_declared_size
            && let Some(declared) = self.declared(name)
            && let Some(Some(tensor)) =
                self.values.get_mut(id.0 as usize).map(|v| v.tensor.as_mut())
            && declared.dims.len() == fact.dims.len()
        {
            tensor.dims = declared.dims.into_iter().map(Expression::Number).collect();
        }
        self.entries[name] = Some(Entry { fact, id: Some(id) });
    }

    /// The first result is the first argument, as PyTorch has no operator there.
    fn same(&mut self, node: &Node) -> Result<bool, GraphError> {
        let Some(from) = node.input(0) else { return Ok(false) };
        let entry = self.known_entry(from)?.clone();
        let entry = match entry.id {
            Some(_) => entry,
            None if entry.fact.known.is_some() => entry,
            None => Entry { id: Some(self.value(Some(from))?), ..entry },
        };
        if let Some(name) = node.output() {
            self.entries[name] = Some(entry);
        }
        Ok(true)
    }

    /// An operand of an elementwise operator: a number, if it is a constant of one element.
    fn operand(&mut self, name: Option<Name>) -> Result<Argument, GraphError> {
        let fact = self.fact(name)?;
        let is_number = fact.rank() == 0 || fact.known.is_some();
        let entry = name.and_then(|name| self.entries[name].as_ref());
        if is_number && fact.elements() == 1 && entry.is_some_and(|entry| entry.id.is_none()) {
            return Ok(match &fact.known {
                Some(Known::Ints(ints)) => Argument::Int(ints.first().copied().unwrap_or(1)),
                Some(Known::Floats(floats)) => {
                    Argument::Float(floats.first().copied().unwrap_or(1.0))
                }
                // Its value is in another file.
                None => Argument::Float(1.0),
            });
        }
        Ok(Argument::Value(self.value(name)?))
    }

    /// An argument that may be left out.
    fn maybe(&mut self, name: Option<Name>) -> Result<Argument, GraphError> {
        match name {
            Some(_) => Ok(Argument::Value(self.value(name)?)),
            None => Ok(Argument::None),
        }
    }
}

fn located(error: GraphError, node: &Node, is_declared_size: bool) -> GraphError {
    match error {
        GraphError::Format(what) => GraphError::Format(format!("{}: {what}", node.title())),
        GraphError::Shapes(what) if is_declared_size => {
            GraphError::Format(format!("{}: {what}", node.title()))
        }
        GraphError::Shapes(what) => GraphError::Rebatched { node: node.title(), what },
        error => error,
    }
}

fn named(arguments: &[(&str, Argument)]) -> Vec<(String, Argument)> {
    arguments.iter().map(|(name, argument)| ((*name).to_owned(), argument.clone())).collect()
}

/// Whole numbers as an argument.
fn numbers(values: &[i64]) -> Argument {
    Argument::Ints(values.iter().map(|v| IntArgument::Known(*v)).collect())
}
