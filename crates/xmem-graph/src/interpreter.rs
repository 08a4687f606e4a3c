//! A graph, run: each operator is called with the tensors that it had in PyTorch, and a value dies after its
//! last use, as Python's names for it do.

mod bounds;
mod call;
mod casts;
mod dispatch;
mod operators;

use crate::dtype::DType;
use crate::eager::arguments::Number;
use crate::eager::journal::Begun;
use crate::eager::tensor::{Again, Tensor};
use crate::eager::{Eager, Former};
use crate::error::GraphError;
use crate::expression::Expression;
use crate::graph::{
    Argument, Body, Context, ContextKind, Graph, IntArgument, ModuleFrame, Operation, ResultValue,
    ValueId,
};
use call::Call;
use casts::Widened;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A value while a graph runs.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Tensor(Tensor),
    Tensors(Vec<Option<Tensor>>),
    Number(Number),
    Ints(Vec<i64>),
    Text(String),
    DType(DType),
    None,
}

/// What a run found that a reader of its answer should know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Operators without a definition here: their results count, and one gradient for each argument.
    pub(crate) unknown: BTreeSet<String>,
    /// Operators whose result has other sizes than the graph says, which are taken.
    pub(crate) different: BTreeSet<String>,
    /// Operators whose results have sizes that follow from values, with the most that these can be, which is taken.
    pub(crate) bounded: BTreeSet<String>,
}

/// What a run of a graph depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Values of the symbols.
    pub(crate) symbols: Rc<RefCell<BTreeMap<String, i64>>>,
    /// Modules whose saved tensors are computed again in backward, by path; `*` stands for one name.
    pub(crate) checkpoints: Vec<String>,
    /// The type of the model's tensors, if it has 16 bits by the job and not by the graph.
    pub(crate) narrow: Option<DType>,
}

impl Settings {
    /// The value of a size, if its symbols are known.
    pub(crate) fn value(&self, size: &Expression) -> Option<i64> {
        size.value(&self.symbols.borrow())
    }

    /// The path of the outermost checkpointed module around a call.
    fn checkpoint_of<'n>(&self, node: &'n Operation) -> Option<&'n str> {
        let paths = node.modules.iter().map(|frame| frame.path.as_str());
        paths.into_iter().find(|path| self.checkpoints.iter().any(|pattern| matches(pattern, path)))
    }
}

/// Returns whether a path, or its end, is of a pattern, name by name.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.rsplit('.'), path.rsplit('.'));
    pattern.all(|name| path.next().is_some_and(|own| name == "*" || name == own))
}

/// The course of a graph.
pub(crate) struct Interpreter<'a> {
    eager: &'a Eager,
    settings: &'a Settings,
    findings: &'a mut Findings,
    /// Calls of modules that are open, with their names for the profiler.
    modules: Vec<(ModuleFrame, Begun)>,
    /// Numbers of modules, by class and path.
    counts: BTreeMap<String, BTreeMap<String, u32>>,
    around: Option<&'a dyn Around>,
    /// Contexts that are open, with what was before them.
    contexts: Vec<(Context, Former)>,
    widened: Vec<Widened>,
}

/// What is done around the modules of a graph.
pub(crate) trait Around {
    /// Before a node.
    fn before(&self, eager: &Eager, at: usize, values: &mut [Option<Value>]);
    /// After the node before `at`.
    fn after(&self, eager: &Eager, at: usize, values: &mut [Option<Value>]);
}

/// A graph that has run up to some node.
pub(crate) struct Course {
    body: Arc<Body>,
    values: Vec<Option<Value>>,
    deaths: Arc<Deaths>,
    at: usize,
    /// Values of the pass before that names refer to, until they have those of this one.
    former: BTreeMap<ValueId, Value>,
}

impl Course {
    /// The graph with these inputs, one for each of its own, before its first operator.
    pub(crate) fn of(graph: &Graph, deaths: &Arc<Deaths>, inputs: Vec<Value>) -> Self {
        let ids: Vec<ValueId> = graph.inputs.iter().map(|i| i.value).collect();
        Self::new(&graph.body, Arc::clone(deaths), &ids, inputs)
    }

    fn new(body: &Arc<Body>, deaths: Arc<Deaths>, ids: &[ValueId], inputs: Vec<Value>) -> Self {
        let mut values: Vec<Option<Value>> = vec![None; body.values.len()];
        for (id, value) in ids.iter().zip(inputs) {
            if let Some(slot) = values.get_mut(id.0 as usize) {
                *slot = Some(value);
            }
        }
        Self { body: Arc::clone(body), values, deaths, at: 0, former: BTreeMap::new() }
    }

    /// The same after a pass whose results names refer to.
    pub(crate) fn after(mut self, former: BTreeMap<ValueId, Value>) -> Self {
        self.former = former;
        self
    }

    /// What names outside of the models refer to when the pass is over.
    pub(crate) fn into_results(mut self) -> BTreeMap<ValueId, Value> {
        let ids = self.body.results_of_models().into_iter();
        ids.filter_map(|id| Some((id, self.values.get_mut(id.0 as usize)?.take()?))).collect()
    }

    /// Names refer to what a node made.
    fn bound(&mut self, node: &Operation) {
        if !self.former.is_empty() {
            node.made().iter().for_each(|id| drop(self.former.remove(id)));
        }
    }

    /// The node behind the last one that makes one of these results; all nodes for the last results.
    fn needed(&self, outputs: Range<usize>) -> usize {
        if outputs.end >= self.body.outputs.len() {
            return self.body.nodes.len();
        }
        let wanted: BTreeSet<ValueId> = self
            .body
            .outputs
            .get(outputs)
            .unwrap_or_default()
            .iter()
            .flat_map(Argument::values)
            .collect();
        let makes = |node: &Operation| {
            node.results.iter().any(|result| match result {
                ResultValue::One(id) => id.is_some_and(|id| wanted.contains(&id)),
                ResultValue::Many(ids) => ids.iter().flatten().any(|id| wanted.contains(id)),
            })
        };
        self.body.nodes.iter().rposition(makes).map_or(0, |at| at + 1)
    }
}

/// The last use of values: those that die after each node.
pub(crate) struct Deaths {
    after: Vec<Vec<ValueId>>,
}

impl Deaths {
    /// With `keeps_results`, values that modules make and code outside of modules uses do not die.
    pub(crate) fn of(body: &Body, keeps_results: bool) -> Self {
        let mut last = vec![None; body.values.len()];
        let mut uses = |at: usize, id: ValueId| {
            if let Some(slot) = last.get_mut(id.0 as usize) {
                *slot = Some(at);
            }
        };
        for (at, node) in body.nodes.iter().enumerate() {
            node.made().into_iter().chain(node.used()).for_each(|id| uses(at, id));
        }
        let mut kept: BTreeSet<ValueId> = body.outputs.iter().flat_map(Argument::values).collect();
        if keeps_results {
            kept.extend(body.results_of_models());
        }
        let mut after = vec![Vec::new(); body.nodes.len()];
        for (value, last) in last.iter().enumerate() {
            let id = ValueId(u32::try_from(value).unwrap_or(u32::MAX));
            if let Some(last) = last
                && !kept.contains(&id)
            {
                after[*last].push(id);
            }
        }
        Self { after }
    }
}

impl Body {
    /// Returns whether the graph enters autocast itself.
    pub(crate) fn has_autocast(&self) -> bool {
        let contexts = self.nodes.iter().flat_map(|node| &node.contexts);
        contexts.into_iter().any(|context| matches!(context.kind, ContextKind::Autocast(Some(_))))
    }

    /// Values that an operator in a module makes, and one outside of all but the outermost uses.
    fn results_of_models(&self) -> BTreeSet<ValueId> {
        let is_outside = |node: &&Operation| node.modules.len() <= 1;
        let made: BTreeSet<ValueId> =
            self.nodes.iter().filter(|node| !is_outside(node)).flat_map(Operation::made).collect();
        let outside = self.nodes.iter().filter(is_outside).flat_map(Operation::used);
        outside.filter(|id| made.contains(id)).collect()
    }

    /// The values that operators use, or that are returned.
    pub(crate) fn used(&self) -> BTreeSet<ValueId> {
        let outputs = self.outputs.iter().flat_map(Argument::values);
        self.nodes.iter().flat_map(Operation::used).chain(outputs).collect()
    }
}

impl<'a> Interpreter<'a> {
    pub(crate) fn new(
        eager: &'a Eager,
        settings: &'a Settings,
        findings: &'a mut Findings,
    ) -> Self {
        Self {
            eager,
            settings,
            findings,
            modules: Vec::new(),
            counts: BTreeMap::new(),
            around: None,
            contexts: Vec::new(),
            widened: Vec::new(),
        }
    }

    /// The same with something that is done around modules.
    pub(crate) fn around(mut self, around: Option<&'a dyn Around>) -> Self {
        self.around = around;
        self
    }

    /// Runs a graph up to the end of what its first `outputs` results need, and returns these.
    pub(crate) fn advance(
        &mut self,
        course: &mut Course,
        outputs: Range<usize>,
    ) -> Result<Vec<Value>, GraphError> {
        let body = Arc::clone(&course.body);
        self.run_to(course, course.needed(outputs.clone()))?;
        self.enter(&[]);
        self.switch(&[]);
        let outputs = body.outputs.get(outputs).unwrap_or_default();
        outputs.iter().map(|output| self.argument(&body, output, &course.values)).collect()
    }

    fn body(
        &mut self,
        body: &Arc<Body>,
        ids: &[ValueId],
        inputs: Vec<Value>,
    ) -> Result<Vec<Value>, GraphError> {
        let mut course = Course::new(body, Arc::new(Deaths::of(body, false)), ids, inputs);
        self.run_to(&mut course, body.nodes.len())?;
        body.outputs.iter().map(|output| self.argument(body, output, &course.values)).collect()
    }

    /// Runs up to a node.
    fn run_to(&mut self, course: &mut Course, end: usize) -> Result<(), GraphError> {
        let body = Arc::clone(&course.body);
        while course.at < end {
            let at = course.at;
            let node = &body.nodes[at];
            self.switch(&node.contexts);
            let Some(path) = self.settings.checkpoint_of(node) else {
                self.before(at, &mut course.values);
                // Nodes of sizes are of no module, and end none.
                if !node.modules.is_empty() {
                    self.enter(&node.modules);
                }
                self.step(&body, at, &mut course.values, &course.deaths)?;
                course.bound(node);
                course.at += 1;
                self.after(course.at, &mut course.values);
                continue;
            };
            let inside = |node: &&Operation| node.modules.iter().any(|frame| frame.path == path);
            let end = at + body.nodes[at..].iter().take_while(inside).count();
            let deaths = Arc::clone(&course.deaths);
            // What is around the part is not run again with it.
            self.before(at, &mut course.values);
            self.checkpointed(&body, at..end, &mut course.values, &deaths)?;
            body.nodes[at..end].iter().for_each(|node| course.bound(node));
            course.at = end;
            self.after(end, &mut course.values);
        }
        Ok(())
    }

    /// Runs a node; then the values that it was the last to use die.
    fn step(
        &mut self,
        body: &Arc<Body>,
        at: usize,
        values: &mut [Option<Value>],
        deaths: &Deaths,
    ) -> Result<(), GraphError> {
        self.switch(&body.nodes[at].contexts);
        self.leave_widened(&body.nodes[at], values);
        self.node(body, &body.nodes[at], values)?;
        if self.eager.is_too_large() {
            return Err(GraphError::Huge);
        }
        for id in &deaths.after[at] {
            if let Some(slot) = values.get_mut(id.0 as usize) {
                *slot = None;
            }
        }
        Ok(())
    }

    /// Runs the nodes of a module whose saved tensors are computed again.
    fn checkpointed(
        &mut self,
        body: &Arc<Body>,
        range: Range<usize>,
        values: &mut [Option<Value>],
        deaths: &Arc<Deaths>,
    ) -> Result<(), GraphError> {
        let used: BTreeSet<ValueId> =
            body.nodes[range.clone()].iter().flat_map(Operation::used).collect();
        let given = |id: ValueId| Some((id, values.get(id.0 as usize)?.clone()?));
        let inputs: Vec<(ValueId, Value)> = used.into_iter().filter_map(given).collect();
        let (own, settings, deaths_again) =
            (Arc::clone(body), self.settings.clone(), Arc::clone(deaths));
        let (again_range, dtype) = (range.clone(), self.eager.autocast_dtype());
        let again: Again = Box::new(move |eager, enough| {
            let settings = Settings { checkpoints: Vec::new(), ..settings.clone() };
            let mut findings = Findings::default();
            let mut values: Vec<Option<Value>> = vec![None; own.values.len()];
            for (id, value) in &inputs {
                values[id.0 as usize] = Some(value.clone());
            }
            let mut run = || {
                let mut interpreter = Interpreter::new(eager, &settings, &mut findings);
                for at in again_range.clone() {
                    // What failed now would have failed before.
                    if enough() || interpreter.step(&own, at, &mut values, &deaths_again).is_err() {
                        break;
                    }
                }
                interpreter.switch(&[]);
            };
            match dtype {
                Some(dtype) => eager.autocast(Some(dtype), run),
                None => run(),
            }
        });
        let eager = self.eager;
        eager.checkpointed(again, || {
            for at in range.clone() {
                if at > range.start {
                    self.after(at, values);
                    self.before(at, values);
                }
                self.enter(&body.nodes[at].modules);
                self.step(body, at, values, deaths)?;
            }
            Ok(())
        })
    }

    fn before(&self, at: usize, values: &mut [Option<Value>]) {
        if let Some(around) = self.around {
            around.before(self.eager, at, values);
        }
    }

    fn after(&self, at: usize, values: &mut [Option<Value>]) {
        if let Some(around) = self.around {
            around.after(self.eager, at, values);
        }
    }

    /// Leaves the contexts that are over and enters those that begin.
    fn switch(&mut self, contexts: &[Context]) {
        let same = self
            .contexts
            .iter()
            .zip(contexts)
            .take_while(|((open, _), next)| open == *next)
            .count();
        while self.contexts.len() > same {
            if let Some((_, former)) = self.contexts.pop() {
                self.eager.leave(former);
            }
        }
        for &context in &contexts[same..] {
            let former = match context.kind {
                ContextKind::Autocast(dtype) => self.eager.enter_autocast(dtype),
                ContextKind::Gradients(are_on) => self.eager.enter_gradients(are_on),
            };
            self.contexts.push((context, former));
        }
    }

    /// Leaves the modules that are over and enters those that begin.
    fn enter(&mut self, stack: &[ModuleFrame]) {
        let same =
            self.modules.iter().zip(stack).take_while(|((open, _), frame)| open == *frame).count();
        while self.modules.len() > same {
            if let Some((_, call)) = self.modules.pop() {
                self.eager.left(&call);
            }
        }
        for frame in &stack[same..] {
            // The profiler numbers the objects of a class in the order in which it meets them.
            let known = self.counts.entry(frame.class.clone()).or_default();
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let number = *known.entry(frame.path.clone()).or_insert(next);
            let call = self.eager.entered(format!("nn.Module: {}_{number}", frame.class));
            self.modules.push((frame.clone(), call));
        }
    }

    fn node(
        &mut self,
        body: &Body,
        node: &Operation,
        values: &mut [Option<Value>],
    ) -> Result<(), GraphError> {
        // Numbers that follow from sizes need no operator.
        if let [ResultValue::One(Some(id))] = node.results.as_slice()
            && let Some(info) = body.values.get(id.0 as usize)
            && let Some(number) = &info.number
        {
            let value = self.settings.value(number).ok_or_else(|| unknown_size(&info.name))?;
            values[id.0 as usize] = Some(Value::Number(Number::Int(value)));
            return Ok(());
        }
        if let Some(results) = self.higher_order(body, node, values)? {
            Self::bind(node, results, values);
            return Ok(());
        }
        let mut arguments = Vec::with_capacity(node.arguments.len());
        for (name, argument) in &node.arguments {
            arguments.push((name.as_str(), self.argument(body, argument, values)?));
        }
        self.narrow_casts(body, node, &mut arguments);
        let mut expected = self.expected(body, node);
        if expected.contains(&None) && self.bound_sizes(body, node, &arguments) {
            expected = self.expected(body, node);
        }
        let results = Call::new(self.eager, &node.target, arguments, expected).run(self.findings);
        Self::bind(node, results, values);
        Ok(())
    }

    /// Sizes and types of the results by the graph; `None` for results that are not tensors.
    fn expected(&self, body: &Body, node: &Operation) -> Vec<Option<(Vec<i64>, DType)>> {
        let of = |id: &Option<ValueId>| {
            let info = body.values.get(id.as_ref()?.0 as usize)?.tensor.as_ref()?;
            let dims: Option<Vec<i64>> = info.dims.iter().map(|d| self.settings.value(d)).collect();
            Some((dims?, info.dtype))
        };
        let mut expected = Vec::new();
        for result in &node.results {
            match result {
                ResultValue::One(id) => expected.push(of(id)),
                ResultValue::Many(ids) => expected.extend(ids.iter().map(of)),
            }
        }
        expected
    }

    /// Operators that run a graph of their own.
    fn higher_order(
        &mut self,
        body: &Body,
        node: &Operation,
        values: &[Option<Value>],
    ) -> Result<Option<Vec<Value>>, GraphError> {
        let inner = node.arguments.iter().find_map(|(_, a)| match a {
            Argument::Body(inner) => Some(inner),
            _ => None,
        });
        let Some(inner) = inner else { return Ok(None) };
        let after = node.arguments.iter().position(|(_, a)| matches!(a, Argument::Body(_)));
        let (_, after) = node.arguments.split_at(after.unwrap_or(0));
        let mut inputs = Vec::new();
        for (_, argument) in &after[1..] {
            inputs.push(self.argument(body, argument, values)?);
        }
        let result = self.body(inner, &inner.inputs, inputs);
        // A list of results is one value.
        let results = result?;
        let is_list = matches!(node.results.as_slice(), [ResultValue::Many(_)]);
        Ok(Some(if is_list {
            let tensors = results
                .into_iter()
                .map(|v| match v {
                    Value::Tensor(t) => Some(t),
                    _ => None,
                })
                .collect();
            vec![Value::Tensors(tensors)]
        } else {
            results
        }))
    }

    fn bind(node: &Operation, results: Vec<Value>, values: &mut [Option<Value>]) {
        let mut bind = |id: Option<ValueId>, value: Value| {
            if let Some(slot) = id.and_then(|id| values.get_mut(id.0 as usize)) {
                *slot = Some(value);
            }
        };
        for (result, value) in node.results.iter().zip(results) {
            match (result, value) {
                (ResultValue::One(id), value) => bind(*id, value),
                (ResultValue::Many(ids), Value::Tensors(tensors)) => {
                    for (id, tensor) in ids.iter().zip(tensors) {
                        bind(*id, tensor.map_or(Value::None, Value::Tensor));
                    }
                }
                (ResultValue::Many(_), _) => {}
            }
        }
    }

    fn argument(
        &self,
        body: &Body,
        argument: &Argument,
        values: &[Option<Value>],
    ) -> Result<Value, GraphError> {
        let value = |id: ValueId| -> Result<Value, GraphError> {
            if let Some(value) = values.get(id.0 as usize).and_then(Option::as_ref) {
                return Ok(value.clone());
            }
            let info = body.values.get(id.0 as usize);
            let number = info.and_then(|i| self.settings.value(i.number.as_ref()?));
            match number {
                Some(number) => Ok(Value::Number(Number::Int(number))),
                None => Err(GraphError::Format(format!(
                    "`{}` is used before it is computed",
                    info.map_or("", |i| i.name.as_str())
                ))),
            }
        };
        Ok(match argument {
            Argument::Value(id) => value(*id)?,
            Argument::Values(ids) => {
                let tensors: Result<Vec<Option<Tensor>>, GraphError> = ids
                    .iter()
                    .map(|id| {
                        let Some(id) = id else { return Ok(None) };
                        Ok(match value(*id)? {
                            Value::Tensor(tensor) => Some(tensor),
                            _ => None,
                        })
                    })
                    .collect();
                Value::Tensors(tensors?)
            }
            Argument::Int(int) => Value::Number(Number::Int(*int)),
            Argument::Ints(ints) => {
                let ints: Result<Vec<i64>, GraphError> = ints
                    .iter()
                    .map(|int| match int {
                        IntArgument::Known(int) => Ok(*int),
                        IntArgument::Value(id) => match value(*id)? {
                            Value::Number(Number::Int(int)) => Ok(int),
                            _ => Err(unknown_size("an argument")),
                        },
                    })
                    .collect();
                Value::Ints(ints?)
            }
            Argument::Float(float) => Value::Number(Number::Float(*float)),

            Argument::Bool(flag) => Value::Number(Number::Bool(*flag)),
            Argument::Text(text) => Value::Text(text.clone()),
            Argument::DType(dtype) => Value::DType(*dtype),
            Argument::Floats(_) | Argument::Bools(_) | Argument::Body(_) | Argument::None => {
                Value::None
            }
        })
    }
}

fn unknown_size(name: &str) -> GraphError {
    GraphError::Size {
        value: name.to_owned(),
        reason: "it follows from values, which are not computed".to_owned(),
    }
}
