//! A call on its way to its operator: under autocast, checked against the graph, or without a definition.

use super::call::Call;
use super::{Findings, Value, operators};
use crate::dtype::DType;
use crate::eager::arguments::{Args, Argument};
use crate::eager::autocast::{Policy, policy};
use crate::eager::tensor::Tensor;

impl Call<'_> {
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
        let results = match operators::run(&self) {
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
    /// The tensors of a result, with gaps.
    fn results(&self) -> Vec<Option<&Tensor>> {
        match self {
            Self::Tensors(tensors) => tensors.iter().map(Option::as_ref).collect(),
            Self::Tensor(tensor) => vec![Some(tensor)],
            _ => vec![None],
        }
    }
}
