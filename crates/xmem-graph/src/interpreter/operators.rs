//! The operators of exported graphs by name, with the defaults of aten/src/ATen/native/native_functions.yaml.

mod layers;

use super::Value;
use super::call::Call;
use crate::aten::{Activation, Axes, Binary, Operand, SavesFor};
use crate::dtype::DType;
use crate::eager::arguments::{Number, args};
use crate::eager::tensor::Tensor;

/// Runs a call; `None` if the operator has no definition.
pub(super) fn run(call: &Call<'_>) -> Option<Vec<Value>> {
    let name = call.operator();
    let groups = [views, arithmetic, layers::run, reductions, creation, indexing, rest];
    groups.iter().find_map(|group| group(call, name))
}

fn one(tensor: Tensor) -> Option<Vec<Value>> {
    Some(vec![Value::Tensor(tensor)])
}

fn many(tensors: Vec<Tensor>) -> Option<Vec<Value>> {
    Some(vec![Value::Tensors(tensors.into_iter().map(Some).collect())])
}

fn pair((a, b): (Tensor, Tensor)) -> Option<Vec<Value>> {
    Some(vec![Value::Tensor(a), Value::Tensor(b)])
}

fn views(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    match name {
        "cat" | "concat" | "concatenate" => {
            let tensors: Vec<Tensor> = call.tensors("tensors").into_iter().flatten().collect();
            return if tensors.is_empty() {
                None
            } else {
                one(e.cat(&tensors, call.int("dim", 0)))
            };
        }
        "stack" => {
            let tensors: Vec<Tensor> = call.tensors("tensors").into_iter().flatten().collect();
            return if tensors.is_empty() {
                None
            } else {
                one(e.stack(&tensors, call.int("dim", 0)))
            };
        }
        "broadcast_tensors" | "meshgrid" => {
            let tensors: Vec<Tensor> = call.tensors("tensors").into_iter().flatten().collect();
            let dims = call.expected_dims()?;
            let expanded = tensors.iter().enumerate().map(|(at, t)| {
                let t = if name == "meshgrid" && t.rank() == 1 {
                    let mut shape = vec![1; dims.len()];
                    if let Some(slot) = shape.get_mut(at) {
                        *slot = t.dim(0);
                    }
                    e.view(t, &shape)
                } else {
                    t.clone()
                };
                e.expand(&t, &dims)
            });
            return many(expanded.collect());
        }
        _ => {}
    }
    let x = &call.maybe("self").or_else(|| call.maybe("input")).or_else(|| call.first())?;
    match name {
        "view" | "_reshape_alias" if call.overload() != "dtype" => {
            one(e.view(x, &call.ints("size")))
        }
        "reshape" => one(e.reshape(x, &call.ints("shape"))),
        "view_as" | "reshape_as" => one(e.view(x, call.maybe("other")?.dims())),
        "_unsafe_view" => one(e.unsafe_view(x, &call.ints("size"))),
        "flatten" => one(e.flatten(x, call.int("start_dim", 0), call.int("end_dim", -1))),
        "unflatten" => one(e.unflatten(x, call.int("dim", 0), &call.ints("sizes"))),
        "t" | "numpy_T" => one(e.t(x)),
        "transpose" | "swapaxes" | "swapdims" => one(e.transpose(
            x,
            call.maybe_int("dim0").or(call.maybe_int("axis0"))?,
            call.maybe_int("dim1").or(call.maybe_int("axis1"))?,
        )),
        "mT" => one(e.transpose(x, -2, -1)),
        "permute" => one(e.permute(x, &call.ints("dims"))),
        "movedim" => {
            let (from, to) = (call.ints("source"), call.ints("destination"));
            let rank = i64::try_from(x.rank()).ok()?;
            let wrap = |d: i64| if d < 0 { d + rank } else { d };
            let (from, to): (Vec<i64>, Vec<i64>) =
                (from.into_iter().map(wrap).collect(), to.into_iter().map(wrap).collect());
            let mut order: Vec<i64> = (0..rank).filter(|d| !from.contains(d)).collect();
            let mut places: Vec<(i64, i64)> = to.into_iter().zip(from).collect();
            places.sort_unstable();
            for (to, from) in places {
                order.insert(usize::try_from(to).ok()?.min(order.len()), from);
            }
            one(e.permute(x, &order))
        }
        "unsqueeze" => one(e.unsqueeze(x, call.int("dim", 0))),
        "squeeze" => match call.maybe_ints("dim") {
            None => one(e.squeeze(x, None)),
            Some(dims) => {
                let mut dims: Vec<i64> =
                    dims.iter().map(|&d| if d < 0 { d + x.rank() as i64 } else { d }).collect();
                dims.sort_unstable_by(|a, b| b.cmp(a));
                one(dims.iter().fold(x.clone(), |x, &d| e.squeeze(&x, Some(d))))
            }
        },
        "expand" | "broadcast_to" => one(e.expand(x, &call.ints("size"))),
        "expand_as" => one(e.expand(x, call.maybe("other")?.dims())),
        "select" => one(e.select(x, call.int("dim", 0), call.int("index", 0))),
        "slice" => {
            let range = (call.int("start", 0), call.int("end", i64::MAX), call.int("step", 1));
            one(e.slice(x, call.int("dim", 0), range))
        }
        "narrow" => {
            one(e.narrow(x, call.int("dim", 0), call.int("start", 0), call.int("length", 0)))
        }
        "split" | "split_with_sizes" | "chunk" | "unsafe_split" | "unsafe_chunk"
        | "tensor_split" => many(split(call, x)?),
        "unbind" => many(e.unbind(x, call.int("dim", 0))),
        "alias" | "lift_fresh" | "positive" => one(e.alias(x)),
        "lift_fresh_copy" => one(e.clone_like(x)),
        "detach" | "detach_" => one(e.detach(x)),
        "clone" => one(e.clone_like(x)),
        "contiguous" => match call.int("memory_format", 1) {
            // torch.channels_last.
            2 => one(channels_last(call, x)),
            _ => one(e.contiguous(x)),
        },
        "roll" => one(e.roll(x, &call.ints("shifts"), &call.ints("dims"))),
        "flip" => {
            one(e.factored(("aten::flip", "FlipBackward0"), x, SavesFor::Nothing, &["aten::flip"]))
        }
        "pad" if call.text("mode").is_none_or(|m| m == "constant") => {
            one(e.call("aten::pad", args![x, call.ints("pad")], || {
                e.constant_pad(x, &call.ints("pad"), call.float("value", 0.0))
            }))
        }
        "constant_pad_nd" => one(e.constant_pad(x, &call.ints("pad"), call.float("value", 0.0))),
        "repeat" => one(e.repeat(x, &call.ints("repeats"))),
        "to" | "_to_copy" | "type_as" | "float" | "half" | "bfloat16" | "double" => to(call, x),
        _ => None,
    }
}

fn to(call: &Call<'_>, x: &Tensor) -> Option<Vec<Value>> {
    let dtype = match call.operator() {
        "type_as" => call.maybe("other")?.dtype(),
        "float" => DType::F32,
        "half" => DType::F16,
        "bfloat16" => DType::BF16,
        "double" => DType::F64,
        _ => call
            .dtype("dtype")
            .or_else(|| call.maybe("other").map(|o| o.dtype()))
            .unwrap_or(x.dtype()),
    };
    let e = call.eager;
    if dtype == x.dtype() && call.flag("copy", false) {
        one(e.clone_like(x))
    } else {
        one(e.to_dtype(x, dtype))
    }
}

fn channels_last(call: &Call<'_>, x: &Tensor) -> Tensor {
    if x.rank() != 4 || !x.is_contiguous() {
        return x.clone();
    }
    let e = call.eager;
    let turned = e.permute(x, &[0, 2, 3, 1]);
    let copy = e.clone_contiguous(&turned);
    e.permute(&copy, &[0, 3, 1, 2])
}

fn split(call: &Call<'_>, x: &Tensor) -> Option<Vec<Tensor>> {
    let e = call.eager;
    let dim = call.int("dim", 0);
    let size = x.dim(dim);
    let equal = |part: i64| -> Vec<i64> {
        let part = part.max(1);
        let full = size / part;
        let rest = size % part;
        // No graph has more results.
        let mut parts = vec![part; usize::try_from(full).unwrap_or(0).min(call.expected.len())];
        if rest > 0 {
            parts.push(rest);
        }
        if parts.is_empty() { vec![0] } else { parts }
    };
    let plain = ("aten::split", "SplitBackward0");
    Some(match call.operator() {
        "split_with_sizes" => {
            let sizes = call.ints("split_sizes");
            e.split(("aten::split_with_sizes", "SplitWithSizesBackward0"), x, &sizes, dim)
        }
        "split" if call.overload() == "sizes" => {
            let sizes = call.ints("split_size");
            e.split(("aten::split_with_sizes", "SplitWithSizesBackward0"), x, &sizes, dim)
        }
        "split" => e.split(plain, x, &equal(call.int("split_size", 1)), dim),
        "unsafe_split" => e.split(
            ("aten::unsafe_split", "UnsafeSplitBackward0"),
            x,
            &equal(call.int("split_size", 1)),
            dim,
        ),
        operator @ ("chunk" | "unsafe_chunk") => {
            let chunks = call.int("chunks", 1).max(1);
            let parts = equal((size + chunks - 1) / chunks);
            let names = if operator == "chunk" {
                plain
            } else {
                ("aten::unsafe_split", "UnsafeSplitBackward0")
            };
            e.call("aten::chunk", args![x, chunks, dim], || e.split(names, x, &parts, dim))
        }
        _ => return None,
    })
}

fn arithmetic(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    let (plain, in_place) = match name.strip_suffix('_') {
        Some(plain) if !name.ends_with("__") => (plain, true),
        _ => (name, false),
    };
    let binary = match plain {
        "add" => Some(Binary::Add),
        "sub" | "subtract" => Some(Binary::Sub),
        "rsub" => Some(Binary::Rsub),
        "mul" | "multiply" => Some(Binary::Mul),
        "div" | "divide" | "true_divide" if call.text("rounding_mode").is_none() => {
            Some(Binary::Div)
        }
        "maximum" => Some(Binary::Maximum),
        "minimum" => Some(Binary::Minimum),
        "max" if call.overload() == "other" => Some(Binary::Maximum),
        "min" if call.overload() == "other" => Some(Binary::Minimum),
        _ => None,
    };
    if let Some(which) = binary {
        let (a, b) =
            (call.operand("self").or_else(|| call.operand("input"))?, call.operand("other")?);
        return match (&a, in_place) {
            (Operand::Tensor(a), true) => one(e.binary_in_place(which, a, &b)),
            _ => one(e.binary(which, &a, &b)),
        };
    }
    if let Some(activation) = Activation::of(plain) {
        let x = call.maybe("self").or_else(|| call.first())?;
        return match (in_place, in_place_name(plain)) {
            (true, Some(name)) => one(e.activation_in_place((activation, name), &x)),
            (true, None) => None,
            (false, _) => one(e.activation(activation, &x)),
        };
    }
    // Results that have no gradient, by their type.
    let logical: Option<(&'static str, Option<DType>)> = match plain {
        "eq" => Some(("aten::eq", Some(DType::Bool))),
        "ne" | "not_equal" => Some(("aten::ne", Some(DType::Bool))),
        "lt" | "less" => Some(("aten::lt", Some(DType::Bool))),
        "gt" | "greater" => Some(("aten::gt", Some(DType::Bool))),
        "le" | "less_equal" => Some(("aten::le", Some(DType::Bool))),
        "ge" | "greater_equal" => Some(("aten::ge", Some(DType::Bool))),
        "logical_and" => Some(("aten::logical_and", Some(DType::Bool))),
        "logical_or" => Some(("aten::logical_or", Some(DType::Bool))),
        "logical_xor" => Some(("aten::logical_xor", Some(DType::Bool))),
        "logical_not" => Some(("aten::logical_not", Some(DType::Bool))),
        "isnan" => Some(("aten::isnan", Some(DType::Bool))),
        "isinf" => Some(("aten::isinf", Some(DType::Bool))),
        "isfinite" => Some(("aten::isfinite", Some(DType::Bool))),
        "bitwise_and" | "__and__" => Some(("aten::bitwise_and", None)),
        "bitwise_or" | "__or__" => Some(("aten::bitwise_or", None)),
        "bitwise_xor" | "__xor__" => Some(("aten::bitwise_xor", None)),
        "bitwise_not" => Some(("aten::bitwise_not", None)),
        "floor_divide" => Some(("aten::floor_divide", None)),
        "div" | "divide" => Some(("aten::div", None)),
        "remainder" => Some(("aten::remainder", None)),
        "fmod" => Some(("aten::fmod", None)),
        "floor" => Some(("aten::floor", None)),
        "ceil" => Some(("aten::ceil", None)),
        "round" => Some(("aten::round", None)),
        "sign" => Some(("aten::sign", None)),
        "sgn" => Some(("aten::sgn", None)),
        "bitwise_left_shift" | "__lshift__" => Some(("aten::bitwise_left_shift", None)),
        "bitwise_right_shift" | "__rshift__" => Some(("aten::bitwise_right_shift", None)),
        _ => None,
    };
    if let Some((name, dtype)) = logical.filter(|_| !in_place) {
        let a = call.operand("self").or_else(|| call.operand("input"))?;
        let operands: Vec<Operand> = std::iter::once(a).chain(call.operand("other")).collect();
        let operands: Vec<&Operand> = operands.iter().collect();
        return one(e.plain(name, &operands, dtype));
    }
    let x = &call.maybe("self").or_else(|| call.maybe("input")).or_else(|| call.first())?;
    let unary = |name, node, saves, steps| one(e.factored((name, node), x, saves, steps));
    use SavesFor::{Input, Result};
    match name {
        "neg" | "negative" => one(e.neg(x)),
        "abs" | "absolute" => one(e.abs(x)),
        "pow" => match call.number("exponent") {
            Some(exponent) if exponent.as_f64() == 0.5 => {
                unary("aten::sqrt", "SqrtBackward0", Result, &["aten::mul", "aten::div"])
            }
            Some(exponent) => one(e.pow(x, exponent)),
            // Tables of positions are computed so, without gradients.
            None => {
                let exponent = call.operand("exponent")?;
                let has_gradient =
                    exponent.tensor().is_some_and(|exponent| e.records(&[x, exponent]));
                let operands = [&x.into(), &exponent];
                if has_gradient { None } else { one(e.plain("aten::pow", &operands, None)) }
            }
        },
        "square" => one(e.pow(x, Number::Int(2))),
        "rsqrt" => one(e.rsqrt(x)),
        "sqrt" => unary("aten::sqrt", "SqrtBackward0", Result, &["aten::mul", "aten::div"]),
        "exp" => unary("aten::exp", "ExpBackward0", Result, &["aten::mul"]),
        "expm1" => unary("aten::expm1", "Expm1Backward0", Result, &["aten::add", "aten::mul"]),
        "log" => unary("aten::log", "LogBackward0", Input, &["aten::div"]),
        "log1p" => unary("aten::log1p", "Log1PBackward0", Input, &["aten::add", "aten::div"]),
        "log2" => unary("aten::log2", "Log2Backward0", Input, &["aten::mul", "aten::div"]),
        "sin" => unary("aten::sin", "SinBackward0", Input, &["aten::cos", "aten::mul"]),
        "cos" => {
            unary("aten::cos", "CosBackward0", Input, &["aten::sin", "aten::neg", "aten::mul"])
        }
        "erf" => unary(
            "aten::erf",
            "ErfBackward0",
            Input,
            &["aten::pow", "aten::neg", "aten::exp", "aten::mul", "aten::mul"],
        ),
        "reciprocal" => unary(
            "aten::reciprocal",
            "ReciprocalBackward0",
            Result,
            &["aten::mul", "aten::neg", "aten::mul"],
        ),
        "nan_to_num" => {
            unary("aten::nan_to_num", "NanToNumBackward0", Input, &["aten::isfinite", "aten::mul"])
        }
        "where" => one(e.where_(
            &call.maybe("condition")?,
            &call.operand("self")?,
            &call.operand("other")?,
        )),
        "masked_fill" => {
            one(e.masked_fill(x, &call.maybe("mask")?, &call.operand("value")?, false))
        }
        "masked_fill_" => {
            one(e.masked_fill(x, &call.maybe("mask")?, &call.operand("value")?, true))
        }
        "clamp" | "clip" | "clamp_min" | "clamp_max" => {
            let bounds = ["min", "max"].iter().filter(|n| call.number(n).is_some()).count().max(1);
            let (name, node) = match name {
                "clamp_min" => ("aten::clamp_min", "ClampMinBackward0"),
                "clamp_max" => ("aten::clamp_max", "ClampMaxBackward0"),
                _ => ("aten::clamp", "ClampBackward1"),
            };
            one(e.clamp(name, node, x, bounds))
        }
        "addcmul" => {
            let product = e.binary(
                Binary::Mul,
                &Operand::Tensor(call.maybe("tensor1")?),
                &Operand::Tensor(call.maybe("tensor2")?),
            );
            one(e.binary(Binary::Add, &x.into(), &(&product).into()))
        }
        "lerp" => {
            let difference = e.binary(Binary::Sub, &Operand::Tensor(call.maybe("end")?), &x.into());
            one(e.binary(Binary::Add, &x.into(), &(&difference).into()))
        }
        _ => None,
    }
}

fn in_place_name(plain: &str) -> Option<&'static str> {
    Some(match plain {
        "relu" => "aten::relu_",
        "silu" => "aten::silu_",
        "sigmoid" => "aten::sigmoid_",
        "tanh" => "aten::tanh_",
        "elu" => "aten::elu_",
        "leaky_relu" => "aten::leaky_relu_",
        "hardtanh" => "aten::hardtanh_",
        "relu6" => "aten::relu6_",
        "hardswish" => "aten::hardswish_",
        "hardsigmoid" => "aten::hardsigmoid_",
        "gelu" => "aten::gelu_",
        "mish" => "aten::mish_",
        _ => return None,
    })
}

fn axes(call: &Call<'_>) -> Axes {
    call.maybe_ints("dim")
        .map_or(Axes::All, |dims| if dims.is_empty() { Axes::All } else { Axes::Some(dims) })
}

fn reductions(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    let x = &call.maybe("self").or_else(|| call.maybe("input")).or_else(|| call.first())?;
    let (axes, keep) = (axes(call), call.flag("keepdim", false));
    match name {
        "sum" => one(e.sum(x, &axes, keep, call.dtype("dtype"))),
        "mean" => one(e.mean(x, &axes, keep, call.dtype("dtype"))),
        "var" => one(e.variance("aten::var", x, &axes, keep)),
        "std" => one(e.variance("aten::std", x, &axes, keep)),
        "var_mean" => pair(e.var_mean(x, &axes, keep)),
        "linalg_vector_norm" | "norm" => one(e.vector_norm(x, &axes, keep)),
        "argmax" | "argmin" => one(e.reduced_plain(
            if name == "argmax" { "aten::argmax" } else { "aten::argmin" },
            x,
            &axes,
            keep,
            DType::I64,
        )),
        "any" | "all" => one(e.reduced_plain(
            if name == "any" { "aten::any" } else { "aten::all" },
            x,
            &axes,
            keep,
            DType::Bool,
        )),
        "count_nonzero" => one(e.reduced_plain("aten::count_nonzero", x, &axes, keep, DType::I64)),
        "max" if axes == Axes::All => {
            one(e.extreme_value(("aten::max", "MaxBackward1"), x, &axes, false))
        }
        "min" if axes == Axes::All => {
            one(e.extreme_value(("aten::min", "MinBackward1"), x, &axes, false))
        }
        "max" => pair(e.extreme(("aten::max", "MaxBackward0"), x, call.int("dim", 0), keep)),
        "min" => pair(e.extreme(("aten::min", "MinBackward0"), x, call.int("dim", 0), keep)),
        "amax" => one(e.extreme_value(("aten::amax", "AmaxBackward0"), x, &axes, keep)),
        "amin" => one(e.extreme_value(("aten::amin", "AminBackward0"), x, &axes, keep)),
        "cumsum" => one(e.cumsum(x, call.int("dim", 0), call.dtype("dtype"))),
        "logsumexp" => one(e.logsumexp(x, &axes, keep)),
        "diff" => {
            let dim = call.int("dim", -1);
            let whole = match call.maybe("prepend") {
                Some(before) => e.cat(&[before, x.clone()], dim),
                None => x.clone(),
            };
            let length = whole.dim(dim) - 1;
            let (a, b) = (e.narrow(&whole, dim, 1, length), e.narrow(&whole, dim, 0, length));
            one(e.binary(Binary::Sub, &(&a).into(), &(&b).into()))
        }
        _ => None,
    }
}

fn creation(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    let full = |name| {
        let (dims, dtype) = (call.expected_dims()?, call.expected_dtype()?);
        let tensor = e.created(name, &dims, dtype);
        e.mark("on_device", &tensor);
        one(tensor)
    };
    let like = |name| one(e.created_like(name, &call.first()?, call.dtype("dtype")));
    match name {
        "empty" => {
            let (dims, dtype) = (call.expected_dims()?, call.expected_dtype()?);
            let tensor = e.empty_called(&dims, dtype);
            e.mark("on_device", &tensor);
            one(tensor)
        }
        "zeros" => full("aten::zeros"),
        "ones" => full("aten::ones"),
        "full" => full("aten::full"),
        "arange" => full("aten::arange"),
        "linspace" => full("aten::linspace"),
        "rand" => full("aten::rand"),
        "randn" => full("aten::randn"),
        "randint" => full("aten::randint"),
        "randperm" => full("aten::randperm"),
        "eye" => full("aten::eye"),
        "scalar_tensor" => full("aten::scalar_tensor"),
        "new_zeros" => full("aten::new_zeros"),
        "new_ones" => full("aten::new_ones"),
        "new_full" => full("aten::new_full"),
        "new_empty" => full("aten::new_empty"),
        "one_hot" => full("aten::one_hot"),
        "zeros_like" => like("aten::zeros_like"),
        "ones_like" => like("aten::ones_like"),
        "full_like" => like("aten::full_like"),
        "empty_like" => like("aten::empty_like"),
        "rand_like" => like("aten::rand_like"),
        "randn_like" => like("aten::randn_like"),
        "bernoulli" => like("aten::bernoulli"),
        "multinomial" => full("aten::multinomial"),
        "tril" | "triu" => {
            let x = call.first()?;
            let names = if name == "tril" {
                ("aten::tril", "TrilBackward0")
            } else {
                ("aten::triu", "TriuBackward0")
            };
            one(e.factored(
                names,
                &x,
                SavesFor::Nothing,
                if name == "tril" { &["aten::tril"] } else { &["aten::triu"] },
            ))
        }
        _ => None,
    }
}

fn indexing(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    let x = &call.maybe("self").or_else(|| call.maybe("input"))?;
    match name {
        "index" => one(e.index(x, &call.tensors("indices"), call.expected_dims())),
        "nonzero" | "argwhere" => one(e.nonzero(x, chosen(call, x))),
        "masked_select" => one(e.masked_select(x, &call.maybe("mask")?, chosen(call, x))),
        "index_select" => one(e.index_select(x, call.int("dim", 0), &call.maybe("index")?)),
        "gather" => one(e.gather(x, call.int("dim", 0), &call.maybe("index")?)),
        "take_along_dim" => one(e.gather(x, call.int("dim", 0), &call.maybe("indices")?)),
        "scatter" => one(e.written(
            ("aten::scatter", "ScatterBackward0"),
            x,
            &call.maybe("index")?,
            call.maybe("src").as_ref(),
        )),
        "scatter_add" => one(e.written(
            ("aten::scatter_add", "ScatterAddBackward0"),
            x,
            &call.maybe("index")?,
            call.maybe("src").as_ref(),
        )),
        "index_add" => one(e.written(
            ("aten::index_add", "IndexAddBackward0"),
            x,
            &call.maybe("index")?,
            call.maybe("source").as_ref(),
        )),
        "topk" => pair(e.ordered(
            ("aten::topk", "TopkBackward0"),
            x,
            (call.int("dim", -1), Some(call.int("k", 1))),
        )),
        "sort" => pair(e.ordered(("aten::sort", "SortBackward0"), x, (call.int("dim", -1), None))),
        "argsort" => {
            one(e.ordered(("aten::sort", "SortBackward0"), x, (call.int("dim", -1), None)).1)
        }
        _ => None,
    }
}

/// What allocates nothing, and what gives a number.
fn rest(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    // Arithmetic and comparisons of sizes, in Python.
    if call.target.starts_with("_operator.") || call.target.starts_with("math.") {
        return Some(vec![Value::None]);
    }
    match name {
        "_assert_tensor_metadata"
        | "_assert_async"
        | "sym_constrain_range"
        | "sym_constrain_range_for_size"
        | "_assert_scalar" => Some(Vec::new()),
        "item" | "_local_scalar_dense" | "is_nonzero" => {
            Some(vec![Value::Number(Number::Bool(true))])
        }
        "bernoulli_" | "fill_" | "zero_" | "normal_" | "uniform_" | "copy_" | "random_"
        | "exponential_" | "log_normal_" | "clamp_" | "clamp_min_" | "clamp_max_" | "tril_"
        | "triu_" | "masked_scatter_" | "index_put_" | "index_fill_" | "scatter_"
        | "scatter_add_" | "neg_" | "abs_" | "pow_" | "exp_" | "log_" | "sqrt_" | "ne_" | "eq_"
        | "logical_and_" | "logical_not_" | "logical_or_" | "requires_grad_" | "lerp_"
        | "addcmul_" | "addcdiv_" => {
            let x = call.maybe("self").or_else(|| call.first())?;
            e.call_named(format!("aten::{name}"), args![x], || ());
            one(x)
        }
        _ => None,
    }
}

/// The number of elements that are chosen: that of the graph, or all.
fn chosen(call: &Call<'_>, x: &Tensor) -> i64 {
    let dims = call.expected_dims();
    dims.and_then(|dims| dims.first().copied()).unwrap_or_else(|| x.elements())
}
