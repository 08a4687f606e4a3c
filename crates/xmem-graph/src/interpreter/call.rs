//! A call of an operator: its arguments by name, with the defaults of its schema.

use super::{Findings, Value};
use crate::aten::Operand;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, Args, Argument, Number};
use crate::eager::autocast::{Policy, policy};
use crate::eager::tensor::Tensor;

/// A call.
pub(super) struct Call<'a> {
    pub(super) eager: &'a Eager,
    target: &'a str,
    arguments: Vec<(&'a str, Value)>,
    /// Sizes and types of the results by the graph.
    pub(super) expected: Vec<Option<(Vec<i64>, DType)>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        eager: &'a Eager,
        target: &'a str,
        arguments: Vec<(&'a str, Value)>,
        expected: Vec<Option<(Vec<i64>, DType)>>,
    ) -> Self {
        Self { eager, target, arguments, expected }
    }

    /// The operator without namespace and overload.
    pub(super) fn operator(&self) -> &'a str {
        let name = self.target.strip_prefix("aten.").unwrap_or(self.target);
        name.split('.').next().unwrap_or(name)
    }

    /// The overload.
    pub(super) fn overload(&self) -> &'a str {
        self.target.rsplit('.').next().unwrap_or_default()
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.arguments.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn maybe(&self, name: &str) -> Option<Tensor> {
        match self.value(name)? {
            Value::Tensor(tensor) => Some(tensor.clone()),
            _ => None,
        }
    }

    /// The first argument that is a tensor.
    pub(super) fn first(&self) -> Option<Tensor> {
        self.arguments.iter().find_map(|(_, value)| match value {
            Value::Tensor(tensor) => Some(tensor.clone()),
            _ => None,
        })
    }

    pub(super) fn tensors(&self, name: &str) -> Vec<Option<Tensor>> {
        match self.value(name) {
            Some(Value::Tensors(tensors)) => tensors.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.maybe_int(name).unwrap_or(default)
    }

    pub(super) fn maybe_int(&self, name: &str) -> Option<i64> {
        match self.value(name)? {
            Value::Number(Number::Int(int)) => Some(*int),
            Value::Number(Number::Bool(flag)) => Some(i64::from(*flag)),
            _ => None,
        }
    }

    pub(super) fn float(&self, name: &str, default: f64) -> f64 {
        self.maybe_float(name).unwrap_or(default)
    }

    pub(super) fn maybe_float(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            Value::Number(number) => Some(number.as_f64()),
            _ => None,
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<Number> {
        match self.value(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        match self.value(name) {
            Some(Value::Number(Number::Bool(flag))) => *flag,
            _ => default,
        }
    }

    pub(super) fn ints(&self, name: &str) -> Vec<i64> {
        match self.value(name) {
            Some(Value::Ints(ints)) => ints.clone(),
            Some(Value::Number(Number::Int(int))) => vec![*int],
            _ => Vec::new(),
        }
    }

    pub(super) fn maybe_ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.value(name)? {
            Value::Ints(ints) => Some(ints.clone()),
            Value::Number(Number::Int(int)) => Some(vec![*int]),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn dtype(&self, name: &str) -> Option<DType> {
        match self.value(name)? {
            Value::DType(dtype) => Some(*dtype),
            _ => None,
        }
    }

    pub(super) fn operand(&self, name: &str) -> Option<Operand> {
        match self.value(name)? {
            Value::Tensor(tensor) => Some(Operand::Tensor(tensor.clone())),
            Value::Number(number) => Some(Operand::Number(*number)),
            _ => None,
        }
    }

    /// Sizes of the first result by the graph.
    pub(super) fn expected_dims(&self) -> Option<Vec<i64>> {
        Some(self.expected.first()?.as_ref()?.0.clone())
    }

    /// Type of the first result by the graph.
    pub(super) fn expected_dtype(&self) -> Option<DType> {
        Some(self.expected.first()?.as_ref()?.1)
    }

    /// Runs it, under autocast if that is on.
    pub(super) fn run(mut self, findings: &mut Findings) -> Vec<Value> {
        let Some(narrow) = self.eager.autocast_dtype() else { return self.dispatched(findings) };
        let to = match policy(self.operator()) {
            Policy::Unchanged => return self.dispatched(findings),
            Policy::Narrow => narrow,
            Policy::Wide => DType::F32,
            Policy::Widest => {
                let tensors = self.arguments.iter().flat_map(|(_, value)| value.tensors());
                let widest = tensors
                    .map(Tensor::dtype)
                    .filter(|t| t.is_floating_point())
                    .reduce(DType::promoted);
                match widest {
                    Some(widest) => widest,
                    None => return self.dispatched(findings),
                }
            }
        };
        let name = self.operator();
        let eager = self.eager;
        let outer = self.written();
        eager.call_named(format!("aten::{name}"), outer, || {
            // Arguments of a C++ call are evaluated from the last.
            for (_, value) in self.arguments.iter_mut().rev() {
                match value {
                    Value::Tensor(tensor) => *tensor = eager.cast(tensor, to),
                    Value::Tensors(tensors) => {
                        for tensor in tensors.iter_mut().flatten() {
                            *tensor = eager.cast(tensor, to);
                        }
                    }
                    _ => {}
                }
            }
            eager.past_autocast(|| self.dispatched(findings))
        })
    }

    fn written(&self) -> Args {
        let mut args = Args::default();
        for (_, value) in &self.arguments {
            value.write(&mut args);
        }
        args
    }

    fn dispatched(self, findings: &mut Findings) -> Vec<Value> {
        let checked = self.expected.clone();
        let target = self.target;
        let results = match super::operators::run(&self) {
            Some(results) => results,
            None => self.unknown(findings),
        };
        let tensors = results.iter().flat_map(Value::results);
        for (tensor, expected) in tensors.zip(checked) {
            if let (Some(tensor), Some((dims, _))) = (tensor, expected)
                // Types differ under autocast, which the graph does not have.
                && tensor.dims() != dims
            {
                findings.different.insert(target.to_owned());
            }
        }
        results
    }

    /// An operator without a definition: results of the graph's sizes; an operator in place gives what it was
    /// given. The gradient has the results and the arguments, and makes one tensor like each argument.
    fn unknown(&self, findings: &mut Findings) -> Vec<Value> {
        findings.unknown.insert(self.target.to_owned());
        let eager = self.eager;
        let name = self.operator().to_owned();
        if name.ends_with('_') && !name.ends_with("__") {
            return self.first().map(Value::Tensor).into_iter().collect();
        }
        let arguments: Vec<Tensor> = self
            .arguments
            .iter()
            .flat_map(|(_, value)| value.tensors().cloned().collect::<Vec<_>>())
            .collect();
        let results: Vec<Option<Tensor>> =
            eager.primitive(format!("aten::{name}"), self.written(), || {
                self.expected
                    .iter()
                    .map(|e| e.as_ref().map(|(dims, dtype)| eager.empty(dims, *dtype)))
                    .collect()
            });
        let inputs: Vec<&Tensor> = arguments.iter().collect();
        let outputs: Vec<&Tensor> = results.iter().flatten().collect();
        if let [_, ..] = outputs.as_slice() {
            let sizes: Vec<(Vec<i64>, DType)> =
                arguments.iter().map(|t| (t.dims().to_vec(), t.dtype())).collect();
            let save = |_: &[bool]| {
                arguments.iter().chain(results.iter().flatten()).map(|t| Some(t.clone())).collect()
            };
            let call = crate::aten::recorded(&inputs, &outputs);
            eager.record(format!("{name}Backward0"), &call, save, move |eager, saved, _| {
                sizes
                    .iter()
                    .enumerate()
                    .map(|(at, (dims, dtype))| saved.needs(at).then(|| eager.empty(dims, *dtype)))
                    .collect()
            });
        }
        if self.expected.len() == 1 {
            results.into_iter().map(|t| t.map_or(Value::None, Value::Tensor)).collect()
        } else {
            let single =
                results.iter().cloned().map(|t| t.map_or(Value::None, Value::Tensor)).collect();
            if self.returns_list() { vec![Value::Tensors(results)] } else { single }
        }
    }

    fn returns_list(&self) -> bool {
        matches!(
            self.operator(),
            "split" | "chunk" | "unbind" | "tensor_split" | "meshgrid" | "broadcast_tensors"
        )
    }
}

impl Value {
    /// The tensors of an argument.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let (one, many): (Option<&Tensor>, &[Option<Tensor>]) = match self {
            Self::Tensor(tensor) => (Some(tensor), &[]),
            Self::Tensors(tensors) => (None, tensors),
            _ => (None, &[]),
        };
        one.into_iter().chain(many.iter().flatten())
    }

    /// The tensors of a result, with gaps.
    fn results(&self) -> Vec<Option<&Tensor>> {
        match self {
            Self::Tensors(tensors) => tensors.iter().map(Option::as_ref).collect(),
            Self::Tensor(tensor) => vec![Some(tensor)],
            _ => vec![None],
        }
    }
}

impl Argument for Value {
    fn write(&self, args: &mut Args) {
        match self {
            Self::Tensor(tensor) => tensor.write(args),
            Self::Tensors(tensors) => {
                tensors.iter().flatten().cloned().collect::<Vec<_>>().write(args);
            }
            Self::Number(number) => number.write(args),
            Self::Ints(ints) => ints.write(args),
            Self::DType(dtype) => dtype.number().write(args),
            Self::Text(_) | Self::None => Absent.write(args),
        }
    }
}
