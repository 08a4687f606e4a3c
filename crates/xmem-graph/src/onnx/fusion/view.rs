//! A model by its values: which node makes each, how often it is used, and constants.

use super::super::fact::Fact;
use super::super::model::{Initializer, Model, Name, Node};
use crate::graph::ModuleFrame;
use std::collections::BTreeMap;

/// A value whose ancestors are more than this is not looked at further.
const MAX_ANCESTORS: usize = 10_000;

/// A model by its values.
pub(super) struct View<'m> {
    model: &'m Model,
    makers: Vec<Option<usize>>,
    uses: Vec<u32>,
    /// Numbers of nodes by the path of their module.
    in_module: BTreeMap<&'m str, u32>,
}

impl<'m> View<'m> {
    pub(super) fn of(model: &'m Model) -> Self {
        let mut makers = vec![None; model.names.len()];
        let mut uses = vec![0; model.names.len()];
        let mut in_module = BTreeMap::new();
        for (at, node) in model.nodes.iter().enumerate() {
            node.outputs.iter().flatten().for_each(|&name| makers[name] = Some(at));
            node.inputs.iter().flatten().for_each(|&name| uses[name] += 1);
            if let Some(path) = node.modules.last().map(path) {
                *in_module.entry(path).or_insert(0) += 1;
            }
        }
        model.outputs.iter().for_each(|&name| uses[name] += 1);
        Self { model, makers, uses, in_module }
    }

    /// The node that makes a value.
    pub(super) fn maker(&self, name: Option<Name>) -> Option<&'m Node> {
        self.model.nodes.get((*self.makers.get(name?)?)?)
    }

    /// The node that makes a value, if it is this operator.
    pub(super) fn made_by(&self, name: Option<Name>, operator: &str) -> Option<&'m Node> {
        self.maker(name).filter(|node| node.operator == operator)
    }

    /// The node that makes a value for one use, if it is this operator.
    pub(super) fn only_for(&self, name: Option<Name>, operator: &str) -> Option<&'m Node> {
        self.made_by(name, operator).filter(|_| self.is_used_once(name))
    }

    pub(super) fn is_used_once(&self, name: Option<Name>) -> bool {
        name.and_then(|name| self.uses.get(name)) == Some(&1)
    }

    pub(super) fn initializer(&self, name: Option<Name>) -> Option<&'m Initializer> {
        self.model.initializers.get(&name?)
    }

    pub(super) fn fact(&self, name: Option<Name>) -> Option<&'m Fact> {
        Some(&self.initializer(name)?.fact)
    }

    /// Returns whether a value is a constant of this number, in the precision of a half.
    pub(super) fn is_number(&self, name: Option<Name>, number: f64) -> bool {
        let value = self.fact(name).and_then(Fact::scalar);
        value.is_some_and(|value| (value - number).abs() <= 2e-3 * number.abs())
    }

    /// Returns whether a value is a weight with this many dimensions.
    pub(super) fn is_weight(&self, name: Option<Name>, rank: usize) -> bool {
        self.fact(name).is_some_and(|f| f.dtype.is_floating_point() && f.rank() == rank)
    }

    /// The operand of a commutative operator beside one that fulfills a condition.
    pub(super) fn beside(
        &self,
        node: &Node,
        is: impl Fn(Option<Name>) -> bool,
    ) -> Option<(Option<Name>, Option<Name>)> {
        let (a, b) = (node.input(0), node.input(1));
        if is(a) {
            Some((a, b))
        } else if is(b) {
            Some((b, a))
        } else {
            None
        }
    }

    /// Factors of a product, through products that have no other use.
    pub(super) fn factors(&self, node: &Node) -> Vec<Option<Name>> {
        let mut factors = Vec::new();
        for operand in [node.input(0), node.input(1)] {
            match self.only_for(operand, "Mul") {
                Some(inner) => factors.extend([inner.input(0), inner.input(1)]),
                None => factors.push(operand),
            }
        }
        factors
    }

    /// The axes of a reduction.
    pub(super) fn axes(&self, node: &Node) -> Option<Vec<i64>> {
        let given = self.fact(node.input(1)).and_then(|f| f.known_ints().map(<[i64]>::to_vec));
        given.or_else(|| node.ints("axes"))
    }

    /// The number of nodes in the module of a node.
    pub(super) fn beside_in_module(&self, node: &Node) -> u32 {
        let path = node.modules.last().map(path);
        path.and_then(|path| self.in_module.get(path)).copied().unwrap_or(0)
    }

    /// Returns whether a value follows from constants and sizes alone, and whether a node of an operator is among
    /// what it follows from.
    pub(super) fn follows_from_sizes(&self, name: Option<Name>, operator: &str) -> Option<bool> {
        let mut open: Vec<Name> = vec![name?];
        let (mut seen, mut found) = (0, false);
        while let Some(name) = open.pop() {
            seen += 1;
            if seen > MAX_ANCESTORS {
                return None;
            }
            if self.model.initializers.contains_key(&name) {
                continue;
            }
            let node = self.maker(Some(name))?;
            found |= node.operator == operator;
            if node.operator != "Shape" {
                open.extend(node.inputs.iter().flatten());
            }
        }
        Some(found)
    }
}

fn path(frame: &ModuleFrame) -> &str {
    &frame.path
}
