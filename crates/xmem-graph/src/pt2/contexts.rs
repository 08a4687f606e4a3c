//! Graphs that operators run under autocast, or with gradients on or off, are written into the graph around them: their
//! operators, with the context that they run in.

use crate::dtype::DType;
use crate::graph::{
    Argument, Body, Context, ContextKind, IntArgument, Operation, ResultValue, ValueId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A context, the graph that runs in it, and what this is given.
type Opened = (ContextKind, Arc<Body>, Vec<(String, Argument)>);

/// What stands for a value.
type Renamed = BTreeMap<ValueId, Argument>;

/// Writes the graphs of contexts into a body. `count` counts contexts.
pub(super) fn flatten(mut body: Body, count: &mut u32) -> Body {
    if !body.nodes.iter().any(|node| context(node).is_some()) {
        return body;
    }
    let mut renamed = Renamed::new();
    let mut nodes = Vec::with_capacity(body.nodes.len());
    for mut node in std::mem::take(&mut body.nodes) {
        node.rename(&renamed);
        let Some((kind, inner, given)) = context(&node) else {
            nodes.push(node);
            continue;
        };
        *count += 1;
        let context = Context { id: *count, kind };
        let first = u32::try_from(body.values.len()).unwrap_or(u32::MAX);
        let moved = |id: ValueId| ValueId(first.saturating_add(id.0));
        body.values.extend(inner.values.iter().cloned());
        let mut inside: Renamed = (0..inner.values.len())
            .map(|at| ValueId(u32::try_from(at).unwrap_or(u32::MAX)))
            .map(|id| (id, Argument::Value(moved(id))))
            .collect();
        inside.extend(inner.inputs.iter().copied().zip(given.iter().map(|(_, a)| a.clone())));
        for inner_node in &inner.nodes {
            let mut inner_node = inner_node.clone();
            inner_node.rename(&inside);
            inner_node.results.iter_mut().for_each(|result| result.rename(moved));
            inner_node.contexts.insert(0, context);
            nodes.push(inner_node);
        }
        let outputs = inner.outputs.iter().flat_map(|output| {
            let mut output = output.clone();
            output.rename(&inside);
            match output {
                Argument::Values(ids) => {
                    ids.into_iter().map(|id| id.map_or(Argument::None, Argument::Value)).collect()
                }
                output => vec![output],
            }
        });
        renamed.extend(
            node.result_ids()
                .into_iter()
                .zip(outputs)
                .filter_map(|(id, output)| Some((id?, output))),
        );
    }
    body.nodes = nodes;
    body.outputs.iter_mut().for_each(|output| output.rename(&renamed));
    body
}

/// The context that an operator opens, with the graph that it runs and what this is given.
fn context(node: &Operation) -> Option<Opened> {
    let at = node.arguments.iter().position(|(_, a)| matches!(a, Argument::Body(_)))?;
    let (_, Argument::Body(body)) = &node.arguments[at] else { return None };
    let flag = node.arguments[..at].iter().find_map(|(_, argument)| match argument {
        Argument::Bool(flag) => Some(*flag),
        _ => None,
    });
    let kind = if node.target.ends_with("wrap_with_set_grad_enabled") {
        ContextKind::Gradients(flag.unwrap_or(true))
    } else if node.target.ends_with("wrap_with_autocast") {
        let dtype = node.arguments[..at].iter().find_map(|(_, argument)| match argument {
            Argument::DType(dtype) => Some(*dtype),
            _ => None,
        });
        ContextKind::Autocast(flag.unwrap_or(true).then(|| dtype.unwrap_or(DType::BF16)))
    } else {
        return None;
    };
    Some((kind, Arc::clone(body), node.arguments[at + 1..].to_vec()))
}

impl Operation {
    fn rename(&mut self, renamed: &Renamed) {
        self.arguments.iter_mut().for_each(|(_, argument)| argument.rename(renamed));
    }

    /// Its results one by one.
    fn result_ids(&self) -> Vec<Option<ValueId>> {
        let ids = self.results.iter().flat_map(|result| match result {
            ResultValue::One(id) => vec![*id],
            ResultValue::Many(ids) => ids.clone(),
        });
        ids.collect()
    }
}

impl ResultValue {
    fn rename(&mut self, moved: impl Fn(ValueId) -> ValueId) {
        match self {
            Self::One(id) => *id = id.map(moved),
            Self::Many(ids) => ids.iter_mut().for_each(|id| *id = id.map(&moved)),
        }
    }
}

impl Argument {
    fn rename(&mut self, renamed: &Renamed) {
        match self {
            Self::Value(id) => {
                if let Some(other) = renamed.get(id) {
                    *self = other.clone();
                }
            }
            Self::Values(ids) => {
                for slot in ids {
                    match slot.and_then(|id| renamed.get(&id)) {
                        Some(Self::Value(other)) => *slot = Some(*other),
                        Some(_) => *slot = None,
                        None => {}
                    }
                }
            }
            Self::Ints(ints) => {
                for int in ints {
                    let IntArgument::Value(id) = int else { continue };
                    match renamed.get(id) {
                        Some(Self::Value(other)) => *int = IntArgument::Value(*other),
                        Some(Self::Int(known)) => *int = IntArgument::Known(*known),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
