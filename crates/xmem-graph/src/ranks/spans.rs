//! The nodes of the modules that are wrapped, call by call.

use super::is_below;
use crate::graph::{Body, Graph, InputRole, Operation, ValueId};
use crate::interpreter::matches;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A call of a wrapped module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The module, as a place among [`Spans::modules`].
    pub(crate) module: usize,
    pub(crate) nodes: Range<usize>,
    /// Values from outside that are not of the model, each with whether it is used behind the call.
    pub(crate) inputs: Vec<(ValueId, bool)>,
    /// Values that are used behind the call.
    pub(crate) outputs: Vec<ValueId>,
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    /// Paths of the wrapped modules, those inside others first; a model behind its modules.
    pub(crate) modules: Vec<String>,
    /// Models: the wrapped modules that are in no other.
    pub(crate) models: usize,
    /// Calls, outer ones first where they begin together.
    pub(crate) calls: Vec<Span>,
}

impl Spans {
    /// Those of the models of a graph, and of the modules below them that match.
    pub(crate) fn of(graph: &Graph, patterns: &[String]) -> Self {
        let body = &graph.body;
        let models = models(graph);
        let mut inner: Vec<&str> = Vec::new();
        for path in body.nodes.iter().flat_map(|node| &node.modules).map(|f| f.path.as_str()) {
            let is_wrapped = patterns.iter().any(|pattern| matches(pattern, path));
            if is_wrapped && !models.contains(path) && !inner.contains(&path) {
                inner.push(path);
            }
        }
        // Modules inside others come before these.
        inner.sort_by_key(|path| std::cmp::Reverse(path.split('.').count()));
        let count = models.len();
        let modules: Vec<String> =
            inner.iter().map(|&path| path.to_owned()).chain(models.clone()).collect();
        let mut calls = Vec::new();
        for (module, path) in modules.iter().enumerate() {
            for nodes in calls_of(body, path, models.len() == 1 && models.contains(path)) {
                calls.push(span(graph, module, nodes));
            }
        }
        calls.sort_by_key(|call| (call.nodes.start, std::cmp::Reverse(call.nodes.end)));
        Self { modules, models: count, calls }
    }

    /// Returns whether a module is a model.
    pub(crate) fn is_model(&self, module: usize) -> bool {
        module + self.models >= self.modules.len()
    }

    /// The model of a module: itself, or the one that it is in.
    pub(crate) fn model_of(&self, module: usize) -> usize {
        let path = &self.modules[module];
        let first = self.modules.len() - self.models;
        let found = (first..self.modules.len()).find(|&at| is_below(path, &self.modules[at]));
        found.unwrap_or(first)
    }

    /// The innermost wrapped module that has a parameter.
    pub(crate) fn owner(&self, parameter: &str) -> usize {
        let owner = self.modules.iter().position(|path| is_below(parameter, path));
        owner.unwrap_or(self.modules.len() - 1)
    }

    /// The name of a module in its model, as messages of PyTorch have it; none for a model.
    pub(crate) fn name(&self, module: usize) -> Option<&str> {
        if self.is_model(module) {
            return None;
        }
        let model = &self.modules[self.model_of(module)];
        let path = &self.modules[module];
        Some(path.strip_prefix(model.as_str()).map_or(path, |rest| rest.trim_start_matches('.')))
    }
}

/// The paths of the models of a graph: the modules that a script's iteration calls, in a graph of `xmem export`; else the
/// graph itself.
fn models(graph: &Graph) -> BTreeSet<String> {
    let is_iteration = graph.is_iteration();
    let mut models = BTreeSet::new();
    if is_iteration {
        for input in &graph.inputs {
            if let InputRole::Parameter(path) = &input.role
                && let Some((model, _)) = path.split_once('.')
            {
                models.insert(model.to_owned());
            }
        }
    }
    if models.is_empty() {
        models.insert(String::new());
    }
    models
}

/// The ranges of nodes of a module, call by call. Nodes of no module, such as sizes, interrupt no call. The only model of
/// a graph without modules is all of it.
fn calls_of(body: &Body, path: &str, is_only: bool) -> Vec<Range<usize>> {
    let has_modules = body.nodes.iter().any(|node| !node.modules.is_empty());
    if !has_modules && is_only {
        return std::iter::once(0..body.nodes.len()).collect();
    }
    let mut calls: Vec<Range<usize>> = Vec::new();
    let mut is_open = false;
    for (at, node) in body.nodes.iter().enumerate() {
        if node.modules.is_empty() {
            continue;
        }
        let is_within = node.modules.iter().any(|frame| frame.path == path);
        match calls.last_mut().filter(|_| is_open) {
            Some(call) if is_within => call.end = at + 1,
            _ if is_within => calls.push(at..at + 1),
            _ => {}
        }
        is_open = is_within;
    }
    calls
}

fn span(graph: &Graph, module: usize, nodes: Range<usize>) -> Span {
    let body = &graph.body;
    let made_by = |nodes: &[Operation]| -> BTreeSet<ValueId> {
        nodes.iter().flat_map(Operation::made).collect()
    };
    let used_by = |nodes: &[Operation]| -> BTreeSet<ValueId> {
        nodes.iter().flat_map(Operation::used).collect()
    };
    let (made, used) = (made_by(&body.nodes[nodes.clone()]), used_by(&body.nodes[nodes.clone()]));
    let mut later = used_by(&body.nodes[nodes.end..]);
    later.extend(body.outputs.iter().flat_map(crate::graph::Argument::values));
    let roles: BTreeMap<ValueId, &InputRole> =
        graph.inputs.iter().map(|input| (input.value, &input.role)).collect();
    let is_of_model =
        |id: &ValueId| roles.get(id).is_some_and(|role| !matches!(role, InputRole::Batch));
    let inputs = used.difference(&made).filter(|id| !is_of_model(id));
    Span {
        module,
        inputs: inputs.map(|&id| (id, later.contains(&id))).collect(),
        outputs: made.intersection(&later).copied().collect(),
        nodes,
    }
}
