//! A call of an operator: its arguments by name, with the defaults of its schema.

use super::Value;
use crate::aten::Operand;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, Args, Argument, Number};
use crate::eager::tensor::Tensor;

/// A call.
pub(super) struct Call<'a> {
    pub(super) eager: &'a Eager,
    pub(super) target: &'a str,
    pub(super) arguments: Vec<(&'a str, Value)>,
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
