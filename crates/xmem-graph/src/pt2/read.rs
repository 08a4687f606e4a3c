//! The JSON of an exported program (torch/_export/serde/schema.py).

use super::contexts::flatten;
use super::json::{Json, Object};
use crate::dtype::DType;
use crate::error::GraphError;
use crate::expression::Expression;
use crate::graph::{
    Argument, Body, Graph, Input, InputRole, IntArgument, ModuleFrame, Operation, ResultValue,
    TensorInfo, ValueId, ValueInfo,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Graphs within graphs, deeper than this, are refused.
const DEEPEST: usize = 32;

/// As c10/util/SmallVector and PyTorch's own checks have it.
const MAX_DIMENSIONS: usize = 64;

/// Larger sizes are refused.
const LARGEST: i64 = 1 << 40;

fn damaged(what: impl Into<String>) -> GraphError {
    GraphError::Format(what.into())
}

fn object<'a>(value: &'a Json<'a>, what: &str) -> Result<&'a Object<'a>, GraphError> {
    value.as_object().ok_or_else(|| damaged(format!("{what} is not an object")))
}

fn member<'a>(of: &'a Object<'a>, key: &str) -> Result<&'a Json<'a>, GraphError> {
    of.get(key).ok_or_else(|| damaged(format!("`{key}` is missing")))
}

fn array<'a>(value: &'a Json<'a>, what: &str) -> Result<&'a [Json<'a>], GraphError> {
    value.as_array().ok_or_else(|| damaged(format!("{what} is not a list")))
}

/// The only member of an object: the kind of a union and its value.
fn union<'a>(value: &'a Json<'a>) -> Option<(&'a str, &'a Json<'a>)> {
    let object = value.as_object()?;
    object.iter().find(|(k, _)| k.starts_with("as_"))
}

/// Reads the program.
pub(super) fn graph(text: &str, weights: &BTreeMap<String, String>) -> Result<Graph, GraphError> {
    let program: Json<'_> = serde_json::from_str(text).map_err(|e| damaged(e.to_string()))?;
    let program = object(&program, "the program")?;
    let module = object(member(program, "graph_module")?, "`graph_module`")?;
    let mut reader = Reader::default();
    let mut body = reader.body(object(member(module, "graph")?, "`graph`")?, 0)?;
    body.most = most(program.get("range_constraints"));
    let signature = object(member(module, "signature")?, "`signature`")?;
    // Values of graphs within the graph come behind its own, and may have the same names.
    let ids: BTreeMap<&str, ValueId> =
        body.values.iter().enumerate().rev().map(|(at, v)| (v.name.as_str(), id(at))).collect();
    let mut inputs = Vec::new();
    for spec in array(member(signature, "input_specs")?, "`input_specs`")? {
        if let Some((name, role)) = input(spec)
            && let Some(&value) = ids.get(name)
        {
            inputs.push(Input { value, role, same_as: None });
        }
    }
    tie(&mut inputs, &body, weights);
    let torch = program.get("torch_version").and_then(Json::as_str).map(str::to_owned);
    Ok(Graph {
        inputs,
        body: Arc::new(body),
        symbols: reader.symbols,
        torch,
        assumptions: Vec::new(),
    })
}

/// The most that sizes can be which follow from values, where a check in the model's code says it.
fn most(constraints: Option<&Json<'_>>) -> BTreeMap<String, i64> {
    let constraints = constraints.and_then(Json::as_object).into_iter().flat_map(Object::iter);
    let stated = constraints.filter_map(|(symbol, range)| {
        let most = range.get("max_val")?.as_i64().filter(|most| (0..=LARGEST).contains(most))?;
        symbol.starts_with('u').then(|| (symbol.to_owned(), most))
    });
    stated.collect()
}

/// Finds parameters that no operator uses because another name of the same data stands for them
/// (torch/export/_trace.py: tied parameters have one value in the graph).
fn tie(inputs: &mut [Input], body: &Body, weights: &BTreeMap<String, String>) {
    let used: BTreeSet<ValueId> = body.used();
    let shape =
        |input: &Input| body.values.get(input.value.0 as usize).and_then(|v| v.tensor.clone());
    let data = |input: &Input| match &input.role {
        InputRole::Parameter(path) => weights.get(path).cloned(),
        _ => None,
    };
    let twins: Vec<Option<usize>> = inputs
        .iter()
        .map(|input| {
            let own = data(input).filter(|_| !used.contains(&input.value))?;
            inputs.iter().position(|other| {
                used.contains(&other.value)
                    && data(other).as_ref() == Some(&own)
                    && shape(other) == shape(input)
            })
        })
        .collect();
    for (input, twin) in inputs.iter_mut().zip(twins) {
        input.same_as = twin;
    }
}

/// `model_weights_config.json`: the file of each parameter's and buffer's data.
pub(super) fn weights(text: &str) -> BTreeMap<String, String> {
    let config: Json<'_> = serde_json::from_str(text).unwrap_or_default();
    let entries = config.get("config").and_then(Json::as_object);
    let file = |entry: &Json<'_>| Some(entry.get("path_name")?.as_str()?.to_owned());
    entries
        .into_iter()
        .flat_map(Object::iter)
        .filter_map(|(name, entry)| Some((name.to_owned(), file(entry)?)))
        .collect()
}

fn id(at: usize) -> ValueId {
    ValueId(u32::try_from(at).unwrap_or(u32::MAX))
}

/// The name of an input's value, and its role.
fn input<'a>(spec: &'a Json<'a>) -> Option<(&'a str, InputRole)> {
    let (kind, spec) = spec.as_object()?.iter().next()?;
    let text = |key: &str| spec.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let arg = spec.get("arg")?;
    let plain = arg.get("name").and_then(Json::as_str);
    let name = plain.or_else(|| union(arg)?.1.get("name").and_then(Json::as_str));
    Some((
        name?,
        match kind {
            "parameter" => InputRole::Parameter(text("parameter_name")),
            "buffer" => InputRole::Buffer(text("buffer_name")),
            "tensor_constant" => InputRole::Constant(text("tensor_constant_name")),
            "user_input" => InputRole::Batch,
            _ => return None,
        },
    ))
}

#[derive(Default)]
struct Reader {
    symbols: BTreeMap<String, i64>,
    /// Contexts that were met.
    contexts: u32,
}

/// Values of a body by name.
#[derive(Default)]
struct Names {
    ids: BTreeMap<String, ValueId>,
    values: Vec<ValueInfo>,
}

impl Names {
    fn id(&mut self, name: &str) -> ValueId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let new = id(self.values.len());
        self.ids.insert(name.to_owned(), new);
        self.values.push(ValueInfo { name: name.to_owned(), ..ValueInfo::default() });
        new
    }
}

impl Reader {
    fn body(&mut self, graph: &Object<'_>, depth: usize) -> Result<Body, GraphError> {
        if depth > DEEPEST {
            return Err(damaged("graphs within graphs without end"));
        }
        let mut names = Names::default();
        if let Some(tensors) = graph.get("tensor_values").and_then(Json::as_object) {
            for (name, meta) in tensors.iter() {
                let info = self.tensor(name, meta)?;
                let id = names.id(name);
                names.values[id.0 as usize].tensor = Some(info);
            }
        }
        if let Some(numbers) = graph.get("sym_int_values").and_then(Json::as_object) {
            for (name, value) in numbers.iter() {
                let id = names.id(name);
                names.values[id.0 as usize].number = self.size(value);
            }
        }
        let mut inputs = Vec::new();
        for value in array(member(graph, "inputs")?, "`inputs`")? {
            if let Some(name) = union(value).and_then(|(_, v)| name_of(v)) {
                inputs.push(names.id(name));
            }
        }
        let mut nodes = Vec::new();
        for node in array(member(graph, "nodes")?, "`nodes`")? {
            nodes.push(self.node(object(node, "a node")?, &mut names, depth)?);
        }
        let mut outputs = Vec::new();
        for value in array(member(graph, "outputs")?, "`outputs`")? {
            outputs.push(self.argument(value, &mut names, depth)?);
        }
        let body = Body { values: names.values, inputs, nodes, outputs, most: BTreeMap::new() };
        Ok(flatten(body, &mut self.contexts))
    }

    fn tensor(&mut self, name: &str, meta: &Json<'_>) -> Result<TensorInfo, GraphError> {
        let meta = object(meta, name)?;
        let number = meta.get("dtype").and_then(Json::as_u64).unwrap_or(0);
        let dtype = DType::of_export(number).ok_or_else(|| GraphError::Size {
            value: name.to_owned(),
            reason: format!("its type ({number}) is not supported"),
        })?;
        let mut sizes = |key: &str| -> Result<Vec<Expression>, GraphError> {
            let list = array(member(meta, key)?, key)?;
            list.iter()
                .map(|size| {
                    self.size(size).ok_or_else(|| GraphError::Size {
                        value: name.to_owned(),
                        reason: format!("`{}` is not understood", excerpt(size)),
                    })
                })
                .collect()
        };
        let dims = sizes("sizes")?;
        if dims.len() > MAX_DIMENSIONS {
            return Err(damaged(format!("`{name}` has {} dimensions", dims.len())));
        }
        let strides = sizes("strides").unwrap_or_default();
        let requires_grad = meta.get("requires_grad").and_then(Json::as_bool).unwrap_or(false);
        Ok(TensorInfo { dims, strides, dtype, requires_grad })
    }

    /// A size, and the value that it had when the graph was made.
    fn size(&mut self, value: &Json<'_>) -> Option<Expression> {
        match union(value)? {
            ("as_int", number) => {
                number.as_i64().filter(|n| n.abs() <= LARGEST).map(Expression::Number)
            }
            ("as_expr", expression) => {
                let parsed = Expression::parse(expression.get("expr_str")?.as_str()?)?;
                let hint = expression.get("hint").and_then(union).and_then(|(_, v)| v.as_i64());
                if let (Some(name), Some(hint)) = (parsed.symbol(), hint)
                    && (0..=LARGEST).contains(&hint)
                {
                    self.symbols.insert(name.to_owned(), hint);
                }
                Some(parsed)
            }
            _ => None,
        }
    }

    fn node(
        &mut self,
        node: &Object<'_>,
        names: &mut Names,
        depth: usize,
    ) -> Result<Operation, GraphError> {
        let target = member(node, "target")?.as_str().unwrap_or_default();
        let target = target.strip_prefix("torch.ops.").unwrap_or(target).to_owned();
        let mut arguments = Vec::new();
        for (at, input) in array(member(node, "inputs")?, "`inputs`")?.iter().enumerate() {
            let name = input.get("name").and_then(Json::as_str).filter(|n| !n.is_empty());
            let name = name.map_or_else(|| at.to_string(), str::to_owned);
            let argument = input
                .get("arg")
                .ok_or_else(|| damaged(format!("an argument of {target} has no value")))?;
            arguments.push((name, self.argument(argument, names, depth)?));
        }
        let mut results = Vec::new();
        for output in array(member(node, "outputs")?, "`outputs`")? {
            results.push(match union(output) {
                Some(("as_tensors" | "as_optional_tensors", list)) => {
                    let list = list.as_array().unwrap_or_default();
                    let named = |v: &Json<'_>, names: &mut Names| {
                        let v = union(v).map_or(v, |(_, v)| v);
                        name_of(v).map(|name| names.id(name))
                    };
                    ResultValue::Many(list.iter().map(|v| named(v, names)).collect())
                }
                Some((_, value)) => ResultValue::One(name_of(value).map(|name| names.id(name))),
                None => ResultValue::One(None),
            });
        }
        let stack =
            node.get("metadata").and_then(|m| m.get("nn_module_stack")).and_then(Json::as_str);
        Ok(Operation {
            target,
            arguments,
            results,
            modules: stack.map(modules).unwrap_or_default(),
            contexts: Vec::new(),
        })
    }

    fn argument(
        &mut self,
        value: &Json<'_>,
        names: &mut Names,
        depth: usize,
    ) -> Result<Argument, GraphError> {
        let Some((kind, value)) = union(value) else { return Ok(Argument::None) };
        // The end of a slice may be the largest number; every other is one of sizes.
        let fits = |n: &i64| {
            n.unsigned_abs() <= LARGEST.unsigned_abs() || *n == i64::MAX || *n == i64::MIN
        };
        let int = |v: &Json<'_>| {
            v.as_i64()
                .filter(fits)
                .ok_or_else(|| damaged(format!("`{}` is not a number", excerpt(v))))
        };
        Ok(match kind {
            "as_tensor" => {
                name_of(value).map_or(Argument::None, |name| Argument::Value(names.id(name)))
            }
            "as_tensors" | "as_optional_tensors" => {
                let list = array(value, "a list of tensors")?;
                let named = |v: &Json<'_>, names: &mut Names| {
                    let v = union(v).map_or(v, |(_, v)| v);
                    name_of(v).map(|name| names.id(name))
                };
                Argument::Values(list.iter().map(|v| named(v, names)).collect())
            }
            "as_int" => Argument::Int(int(value)?),
            "as_float" => Argument::Float(number(value)),
            "as_bool" => Argument::Bool(value.as_bool().unwrap_or(false)),
            "as_string" => Argument::Text(value.as_str().unwrap_or_default().to_owned()),
            "as_ints" => {
                let list: Result<Vec<i64>, _> =
                    array(value, "a list of numbers")?.iter().map(int).collect();
                Argument::Ints(list?.into_iter().map(IntArgument::Known).collect())
            }
            "as_floats" => {
                Argument::Floats(array(value, "a list of numbers")?.iter().map(number).collect())
            }
            "as_bools" => Argument::Bools(
                array(value, "a list")?.iter().map(|v| v.as_bool().unwrap_or(false)).collect(),
            ),
            "as_sym_int" | "as_sym_float" | "as_sym_bool" => symbolic(value, names),
            "as_sym_ints" => {
                let list = array(value, "a list of sizes")?;
                let mut ints = Vec::new();
                for item in list {
                    ints.push(match symbolic(item, names) {
                        Argument::Int(known) => IntArgument::Known(known),
                        Argument::Value(id) => IntArgument::Value(id),
                        _ => return Err(damaged(format!("`{}` is not a size", excerpt(item)))),
                    });
                }
                Argument::Ints(ints)
            }
            "as_scalar_type" => {
                value.as_u64().and_then(DType::of_export).map_or(Argument::None, Argument::DType)
            }
            "as_memory_format" => Argument::Int(value.as_i64().unwrap_or(0)),
            "as_graph" => {
                let graph =
                    value.get("graph").ok_or_else(|| damaged("a graph without operators"))?;
                Argument::Body(Arc::new(self.body(object(graph, "`graph`")?, depth + 1)?))
            }
            _ => Argument::None,
        })
    }
}

/// A number or a value of the graph.
fn symbolic(value: &Json<'_>, names: &mut Names) -> Argument {
    match union(value) {
        Some(("as_int", v)) => Argument::Int(v.as_i64().unwrap_or(0)),
        Some(("as_float", v)) => Argument::Float(number(v)),
        Some(("as_bool", v)) => Argument::Bool(v.as_bool().unwrap_or(false)),
        Some(("as_name", v)) => {
            v.as_str().map_or(Argument::None, |name| Argument::Value(names.id(name)))
        }
        _ => Argument::None,
    }
}

/// A number; infinities are words.
fn number(value: &Json<'_>) -> f64 {
    match value.as_str() {
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some("NaN") => f64::NAN,
        _ => value.as_f64().unwrap_or(0.0),
    }
}

fn name_of<'a>(value: &'a Json<'a>) -> Option<&'a str> {
    value.get("name").and_then(Json::as_str).or_else(|| value.get("as_name").and_then(Json::as_str))
}

fn excerpt(value: &Json<'_>) -> String {
    value.to_string().chars().take(60).collect()
}

/// `key,path,class;…`: the modules around a call, outermost first. A class may have commas of its own.
fn modules(stack: &str) -> Vec<ModuleFrame> {
    let frame = |text: &str| {
        let mut parts = text.splitn(3, ',');
        let _key = parts.next()?;
        let (path, class) = (parts.next()?, parts.next()?);
        // Nodes of sizes have none (torch/fx/passes/runtime_assert.py).
        if path == "_empty_nn_module_stack_from_metadata_hook" {
            return None;
        }
        let class = class.rsplit('.').next().unwrap_or(class);
        Some(ModuleFrame { path: path.to_owned(), class: class.to_owned() })
    };
    stack.split(';').filter_map(frame).collect()
}
