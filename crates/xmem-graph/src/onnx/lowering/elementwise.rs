//! Operators of each element.

use super::super::fact::{Fact, broadcast};
use super::super::model::Node;
use super::Lowering;
use crate::dtype::DType;
use crate::error::GraphError;
use crate::graph::Argument;

/// Operators of one tensor and their names in ATen.
const UNARY: &[(&str, &str)] = &[
    ("Relu", "aten.relu.default"),
    ("Sigmoid", "aten.sigmoid.default"),
    ("Tanh", "aten.tanh.default"),
    ("HardSigmoid", "aten.hardsigmoid.default"),
    ("HardSwish", "aten.hardswish.default"),
    ("LeakyRelu", "aten.leaky_relu.default"),
    ("Elu", "aten.elu.default"),
    ("Selu", "aten.elu.default"),
    ("Celu", "aten.elu.default"),
    ("Softplus", "aten.softplus.default"),
    ("Mish", "aten.mish.default"),
    ("Swish", "aten.silu.default"),
    ("Gelu", "aten.gelu.default"),
    ("Neg", "aten.neg.default"),
    ("Abs", "aten.abs.default"),
    ("Sqrt", "aten.sqrt.default"),
    ("xmem::Rsqrt", "aten.rsqrt.default"),
    ("Exp", "aten.exp.default"),
    ("Log", "aten.log.default"),
    ("Sin", "aten.sin.default"),
    ("Cos", "aten.cos.default"),
    ("Erf", "aten.erf.default"),
    ("Reciprocal", "aten.reciprocal.default"),
    ("Floor", "aten.floor.default"),
    ("Ceil", "aten.ceil.default"),
    ("Round", "aten.round.default"),
    ("Sign", "aten.sign.default"),
];

/// Tests of one tensor.
const TESTS: &[(&str, &str)] = &[
    ("Not", "aten.logical_not.default"),
    ("IsNaN", "aten.isnan.default"),
    ("IsInf", "aten.isinf.default"),
];

/// Operators of two tensors, of which one may be a number.
const BINARY: &[(&str, &str)] = &[
    ("Add", "aten.add.Tensor"),
    ("Sub", "aten.sub.Tensor"),
    ("Mul", "aten.mul.Tensor"),
    ("Div", "aten.div.Tensor"),
    ("Mod", "aten.remainder.Tensor"),
];

const COMPARISONS: &[(&str, &str)] = &[
    ("Equal", "aten.eq.Tensor"),
    ("Less", "aten.lt.Tensor"),
    ("LessOrEqual", "aten.le.Tensor"),
    ("Greater", "aten.gt.Tensor"),
    ("GreaterOrEqual", "aten.ge.Tensor"),
    ("And", "aten.logical_and.default"),
    ("Or", "aten.logical_or.default"),
    ("Xor", "aten.logical_xor.default"),
];

/// Runs an operator of each element.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let operator = node.operator.as_str();
    let find = |table: &[(&str, &'static str)]| {
        table.iter().find(|(own, _)| *own == operator).map(|(_, target)| *target)
    };
    if let Some(target) = find(UNARY) {
        let x = l.fact(node.input(0))?.clone();
        return unary(l, node, target, Fact { known: None, ..x });
    }
    if let Some(target) = find(TESTS) {
        let x = l.fact(node.input(0))?.clone();
        return unary(l, node, target, Fact { dtype: DType::Bool, known: None, ..x });
    }
    if let Some(target) = find(BINARY) {
        return binary(l, node, target, None);
    }
    if let Some(target) = find(COMPARISONS) {
        return binary(l, node, target, Some(DType::Bool));
    }
    match operator {
        "Max" | "Min" => extreme(l, node),
        "Sum" => sum(l, node),
        "Pow" => pow(l, node),
        "Clip" => clip(l, node),
        "PRelu" => prelu(l, node),
        "Where" => choice(l, node),
        "Cast" | "CastLike" => cast(l, node),
        "Identity" => l.same(node),
        _ => Ok(false),
    }
}

fn unary(l: &mut Lowering<'_>, node: &Node, target: &str, fact: Fact) -> Result<bool, GraphError> {
    let input = l.value(node.input(0))?;
    l.result(node, &in_place(node, target), &[("self", Argument::Value(input))], fact)
}

/// The operator that writes into its operand, if this node does.
fn in_place(node: &Node, target: &str) -> String {
    match target.rsplit_once('.') {
        Some((name, overload)) if node.in_place => format!("{name}_.{overload}"),
        _ => target.to_owned(),
    }
}

/// Sizes of operands that are broadcast, and the type of the result.
fn spread(
    l: &Lowering<'_>,
    node: &Node,
    range: std::ops::Range<usize>,
) -> Result<Fact, GraphError> {
    let mut facts = Vec::new();
    for at in range {
        facts.push(l.fact(node.input(at))?);
    }
    let dims = broadcast(facts.iter().map(|fact| fact.dims.as_slice()))?;
    // Numbers have no part in the type (torch/csrc/tensor, `result_type`).
    let tensors = facts.iter().filter(|fact| fact.rank() > 0).chain(&facts);
    let dtype = tensors.map(|fact| fact.dtype).next().unwrap_or(DType::F32);
    Fact::of(dtype, dims)
}

fn binary(
    l: &mut Lowering<'_>,
    node: &Node,
    target: &str,
    dtype: Option<DType>,
) -> Result<bool, GraphError> {
    let mut result = spread(l, node, 0..2)?;
    result.dtype = dtype.unwrap_or(result.dtype);
    let (mut a, mut b) = (l.operand(node.input(0))?, l.operand(node.input(1))?);
    let is_tensor = |argument: &Argument| matches!(argument, Argument::Value(_));
    // A number on the left is PyTorch's on the right, but for a difference and a quotient.
    let mut target = target;
    if !is_tensor(&a) {
        if !is_tensor(&b) {
            b = Argument::Value(l.value(node.input(1))?);
        }
        match target {
            "aten.sub.Tensor" => {
                target = "aten.rsub.Scalar";
                std::mem::swap(&mut a, &mut b);
            }
            "aten.div.Tensor" => return quotient(l, node, b, a, result),
            _ => std::mem::swap(&mut a, &mut b),
        }
    }
    let is_whole = l.fact(node.input(0))?.dims == result.dims;
    let target = if is_whole { in_place(node, target) } else { target.to_owned() };
    l.result(node, &target, &[("self", a), ("other", b)], result)
}

/// A number by a tensor: its reciprocal, and a product unless the number is one (torch/_tensor.py, `__rdiv__`).
fn quotient(
    l: &mut Lowering<'_>,
    node: &Node,
    x: Argument,
    number: Argument,
    result: Fact,
) -> Result<bool, GraphError> {
    let value = l.step(node, "aten.reciprocal.default", &[("self", x)], &result);
    let arguments = [("self", Argument::Value(value)), ("other", number)];
    l.result(node, "aten.mul.Tensor", &arguments, result)
}

/// `torch.maximum`, or `torch.clamp` with a number.
fn extreme(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let is_largest = node.operator == "Max";
    if node.inputs.len() == 1 {
        return l.same(node);
    }
    let target = if is_largest { "aten.maximum.default" } else { "aten.minimum.default" };
    let mut left = l.operand(node.input(0))?;
    for at in 1..node.inputs.len() {
        let result = spread(l, node, 0..at + 1)?;
        let mut right = l.operand(node.input(at))?;
        if !matches!(left, Argument::Value(_)) {
            std::mem::swap(&mut left, &mut right);
        }
        if !matches!(left, Argument::Value(_)) {
            left = Argument::Value(l.value(node.input(0))?);
        }
        let bound = if is_largest { "min" } else { "max" };
        let (target, name) = match &right {
            Argument::Value(_) => (target, "other"),
            _ => ("aten.clamp.default", bound),
        };
        let arguments = [("self", left), (name, right)];
        if at + 1 == node.inputs.len() {
            return l.result(node, target, &arguments, result);
        }
        left = Argument::Value(l.step(node, target, &arguments, &result));
    }
    Ok(false)
}

fn sum(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    if node.inputs.len() == 1 {
        return l.same(node);
    }
    let mut left = Argument::Value(l.value(node.input(0))?);
    for at in 1..node.inputs.len() {
        let result = spread(l, node, 0..at + 1)?;
        let arguments = [("self", left), ("other", Argument::Value(l.value(node.input(at))?))];
        if at + 1 == node.inputs.len() {
            return l.result(node, "aten.add.Tensor", &arguments, result);
        }
        left = Argument::Value(l.step(node, "aten.add.Tensor", &arguments, &result));
    }
    Ok(false)
}

fn pow(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let result = spread(l, node, 0..2)?;
    let base = Argument::Value(l.value(node.input(0))?);
    let exponent = match l.operand(node.input(1))? {
        // A number without its value.
        Argument::Value(_) => Argument::Float(2.0),
        number => number,
    };
    l.result(node, "aten.pow.Tensor_Scalar", &[("self", base), ("exponent", exponent)], result)
}

/// `F.relu6`, or `torch.clamp`.
fn clip(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = Fact { known: None, ..l.fact(node.input(0))?.clone() };
    let bound = |l: &Lowering<'_>, at: usize, attribute: &str| match node.input(at) {
        Some(name) => Ok::<_, GraphError>(Some(l.fact(Some(name))?.scalar().unwrap_or(0.5))),
        None if node.attributes.contains_key(attribute) => Ok(Some(node.float(attribute, 0.0))),
        None => Ok(None),
    };
    let (low, high) = (bound(l, 1, "min")?, bound(l, 2, "max")?);
    let input = ("self", Argument::Value(l.value(node.input(0))?));
    let number = |bound: Option<f64>| bound.map_or(Argument::None, Argument::Float);
    match (low, high) {
        (Some(0.0), Some(6.0)) => {
            l.result(node, &in_place(node, "aten.hardtanh.default"), &[input], x)
        }
        (Some(low), None) => {
            l.result(node, "aten.clamp_min.default", &[input, ("min", Argument::Float(low))], x)
        }
        (None, Some(high)) => {
            l.result(node, "aten.clamp_max.default", &[input, ("max", Argument::Float(high))], x)
        }
        (low, high) => {
            let arguments = [input, ("min", number(low)), ("max", number(high))];
            l.result(node, "aten.clamp.default", &arguments, x)
        }
    }
}

/// `F.prelu`, as a choice between the input and its product with the slope.
fn prelu(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = Fact { known: None, ..l.fact(node.input(0))?.clone() };
    let input = l.value(node.input(0))?;
    let slope = super::layers::weight_of(l, node, 1, &l.fact(node.input(1))?.dims.clone())?;
    let arguments = [("self", Argument::Value(input)), ("weight", Argument::Value(slope))];
    l.result(node, "aten.prelu.default", &arguments, x)
}

fn choice(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let dims = spread(l, node, 0..3)?.dims;
    let of = spread(l, node, 1..3)?.dtype;
    let result = Fact::of(of, dims)?;
    let condition = Argument::Value(l.value(node.input(0))?);
    let (a, b) = (l.operand(node.input(1))?, l.operand(node.input(2))?);
    let arguments = [("condition", condition), ("self", a), ("other", b)];
    l.result(node, "aten.where.self", &arguments, result)
}

fn cast(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let to = if node.operator == "CastLike" {
        Some(l.fact(node.input(1))?.dtype)
    } else {
        i32::try_from(node.int("to", 0)).ok().and_then(DType::of_onnx)
    };
    let to = to.ok_or_else(|| GraphError::Format("a type that is not supported".to_owned()))?;
    let x = l.fact(node.input(0))?.clone();
    if x.dtype == to {
        return l.same(node);
    }
    let input = ("self", Argument::Value(l.value(node.input(0))?));
    let fact = Fact { dtype: to, known: None, ..x };
    l.result(node, "aten.to.dtype", &[input, ("dtype", Argument::DType(to))], fact)
}
