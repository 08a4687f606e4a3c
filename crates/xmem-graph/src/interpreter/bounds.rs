//! Sizes that follow from values: the most that they can be.

use super::{Interpreter, Value};
use crate::eager::arguments::Number;
use crate::eager::tensor::Tensor;
use crate::graph::{Body, Operation};

impl Interpreter<'_> {
    /// Gives symbols that an operator defines the largest value that they can have: as many elements are chosen as there
    /// are. Returns whether there was such a symbol.
    pub(super) fn bound_sizes(
        &mut self,
        body: &Body,
        node: &Operation,
        arguments: &[(&str, Value)],
    ) -> bool {
        let mut has_bound = false;
        for id in node.made() {
            let Some(info) = body.values.get(id.0 as usize) else { continue };
            let dims = info.tensor.iter().flat_map(|tensor| &tensor.dims);
            let symbols: Vec<&str> = dims
                .filter(|dim| self.settings.value(dim).is_none())
                .filter_map(|dim| dim.symbol())
                .collect();
            for symbol in symbols {
                let chosen = most(&node.target, arguments);
                let stated = body.most.get(symbol).copied();
                let Some(most) = chosen.into_iter().chain(stated).min() else { continue };
                self.settings.symbols.borrow_mut().insert(symbol.to_owned(), most);
                let operator = node.target.trim_start_matches("aten.");
                self.findings.bounded.insert(format!("{operator}: at most {most}"));
                has_bound = true;
            }
        }
        has_bound
    }
}

/// The most elements that an operator can choose.
fn most(target: &str, arguments: &[(&str, Value)]) -> Option<i64> {
    let operator = target.strip_prefix("aten.").unwrap_or(target);
    let operator = operator.split('.').next()?;
    let tensor = |name: &str| match arguments.iter().find(|(known, _)| *known == name)?.1 {
        Value::Tensor(ref tensor) => Some(tensor.clone()),
        _ => None,
    };
    match operator {
        "index" => {
            let indices = arguments.iter().find(|(name, _)| *name == "indices")?;
            let Value::Tensors(indices) = &indices.1 else { return None };
            indices.iter().flatten().find(|index| index.dtype().is_of_masks()).map(Tensor::elements)
        }
        "masked_select" => Some(tensor("mask")?.elements()),
        "nonzero" | "argwhere" | "_unique" | "_unique2" | "unique_consecutive" => {
            Some(tensor("self").or_else(|| tensor("input"))?.elements())
        }
        "unique_dim" | "unique_dim_consecutive" => {
            let dim = arguments.iter().find_map(|(name, value)| match value {
                Value::Number(Number::Int(dim)) if *name == "dim" => Some(*dim),
                _ => None,
            });
            Some(tensor("self")?.dim(dim.unwrap_or(0)))
        }
        _ => None,
    }
}
