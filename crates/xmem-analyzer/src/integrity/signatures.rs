//! What the shapes of an operator's inputs say: the size of its output, for operators that always allocate
//! it, and whether they can stand together.

use crate::args::{Argument, Arguments, DType, TensorArg};
use xmem_types::saturating_product;

/// The bytes of the tensor that an operator returns, where its inputs give them and it is never a view
/// and never written to an argument.
pub(super) fn output_bytes(name: &str, arguments: &Arguments) -> Option<u64> {
    let tensor = |position| arguments.tensor(position);
    match name.strip_prefix("aten::")? {
        "mm" if arguments.list.len() == 2 => product(tensor(0)?, tensor(1)?),
        "addmm" if arguments.list.len() == 5 => product(tensor(1)?, tensor(2)?),
        "bmm" if arguments.list.len() == 2 => product(tensor(0)?, tensor(1)?),
        "empty" => created(arguments, 0, 1),
        "empty_strided" => created(arguments, 0, 2),
        "mul" | "div" if arguments.list.len() == 2 => broadcast(tensor(0)?, tensor(1)?),
        "add" | "sub" if arguments.list.len() == 3 => broadcast(tensor(0)?, tensor(1)?),
        "native_layer_norm" | "_softmax" | "_log_softmax" | "gelu" | "silu" | "tanh" => {
            same(tensor(0)?)
        }
        _ => None,
    }
}

/// The operator that moves tensors to a device, as those of a model (aten/src/ATen/native/TensorConversions.cpp).
pub(super) const COPY: &str = "aten::_to_copy";

/// The bytes of the tensor that an operator returns on a GPU. Beside those of [`output_bytes`], which the host may make
/// otherwise. A tensor that is made of sizes alone may be on the meta device, unless a convolution or a normalization
/// makes its output, or a copy. Pinned memory of the host has no events.
pub(super) fn device_output_bytes(name: &str, inside: &str, arguments: &Arguments) -> Option<u64> {
    match name.strip_prefix("aten::")? {
        "empty" if arguments.value(4) == Some("True") => None,
        "empty_strided" if arguments.value(5) == Some("True") => None,
        "empty_strided" if inside == COPY => output_bytes(name, arguments),
        "empty" | "empty_strided" if !inside.contains("conv") && !inside.contains("_norm") => None,
        // Of another type, or pinned.
        "empty_like" if matches!(arguments.list.get(1), Some(Argument::Value(_))) => None,
        "empty_like" if arguments.value(4) == Some("True") => None,
        "empty_like"
        | "clone"
        | "relu"
        | "sigmoid"
        | "neg"
        | "rsqrt"
        | "cudnn_batch_norm"
        | "native_dropout"
        | "native_dropout_backward"
        | "threshold_backward"
        | "gelu_backward"
        | "silu_backward"
        | "_softmax_backward_data"
        | "_log_softmax_backward_data" => same(arguments.tensor(0)?),
        "max_pool2d_with_indices_backward" => same(arguments.tensor(1)?),
        _ => output_bytes(name, arguments),
    }
}

fn same(input: &TensorArg) -> Option<u64> {
    (input.dtype != DType::Other).then(|| input.bytes())
}

/// Of a matrix product, or a batch of them.
fn product(left: &TensorArg, right: &TensorArg) -> Option<u64> {
    let (rows, columns) = (left.dims.split_last()?.1, right.dims.last()?);
    if left.dtype == DType::Other || left.dtype != right.dtype {
        return None;
    }
    let elements = saturating_product(rows).saturating_mul(*columns);
    Some(elements.saturating_mul(left.dtype.size()))
}

/// Of an operator on two tensors of one type.
fn broadcast(left: &TensorArg, right: &TensorArg) -> Option<u64> {
    if left.dtype != right.dtype
        || !matches!(left.dtype, DType::F32 | DType::F64 | DType::BF16 | DType::F16)
    {
        return None;
    }
    let (long, short) =
        if left.dims.len() < right.dims.len() { (right, left) } else { (left, right) };
    let skipped = long.dims.len() - short.dims.len();
    let elements = long.dims.iter().enumerate().map(|(at, &extent)| {
        let other = at.checked_sub(skipped).map_or(1, |at| short.dims[at]);
        if extent == 1 { other } else { extent }
    });
    let elements = elements.fold(1, u64::saturating_mul);
    Some(elements.saturating_mul(left.dtype.size()))
}

/// Of a new tensor whose sizes and type (c10/core/ScalarType.h) stand among the arguments.
fn created(arguments: &Arguments, sizes: usize, dtype: usize) -> Option<u64> {
    let Argument::Value(code) = arguments.list.get(dtype)? else { return None };
    let size = match code.as_str() {
        "0" | "1" | "11" => 1,
        "2" | "5" | "15" => 2,
        "3" | "6" => 4,
        "4" | "7" => 8,
        _ => return None,
    };
    let extents = arguments.ints(sizes)?.into_iter();
    let elements = extents
        .map(|extent| u64::try_from(extent).ok())
        .try_fold(1u64, |product, extent| Some(product.saturating_mul(extent?)))?;
    Some(elements.saturating_mul(size))
}

/// Returns whether the shapes of an operator's inputs can stand together; `None` where nothing is known.
pub(super) fn inputs_agree(name: &str, arguments: &Arguments) -> Option<bool> {
    let dims = |position| arguments.tensor(position).map(|tensor| tensor.dims.as_slice());
    let channels = |groups| {
        let (input, weight) = (dims(0)?, dims(1)?);
        let [groups] = arguments.ints(groups)?[..] else { return None };
        let all = weight.get(1)?.checked_mul(u64::try_from(groups).ok()?);
        // An input without a batch has one dimension less.
        let at = (input.len() + 1).checked_sub(weight.len())?;
        Some(all == input.get(at).copied())
    };
    match name.strip_prefix("aten::")? {
        "mm" | "bmm" => follow(dims(0)?, dims(1)?),
        "addmm" => follow(dims(1)?, dims(2)?),
        "linear" => Some(dims(0)?.last() == dims(1)?.last()),
        "convolution" if arguments.value(6)? == "False" => channels(8),
        "mkldnn_convolution" => channels(6),
        "native_batch_norm" => Some(dims(0)?.get(1) == dims(1)?.first()),
        "native_layer_norm" => Some(dims(0)?.last() == dims(2)?.last()),
        "add" | "sub" | "mul" | "div" => Some(broadcastable(dims(0)?, dims(1)?)),
        _ => None,
    }
}

/// Of a product: the last extent of the left is the one before the last of the right.
fn follow(left: &[u64], right: &[u64]) -> Option<bool> {
    Some(left.last()? == right.get(right.len().checked_sub(2)?)?)
}

fn broadcastable(left: &[u64], right: &[u64]) -> bool {
    left.iter().rev().zip(right.iter().rev()).all(|(a, b)| a == b || *a == 1 || *b == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dims: &[u64]) -> Argument {
        Argument::Tensor(TensorArg { dims: dims.to_vec(), strides: Vec::new(), dtype: DType::F32 })
    }

    fn value(text: &str) -> Argument {
        Argument::Value(text.to_owned())
    }

    #[test]
    fn outputs_follow_from_the_inputs() {
        let cases: [(&str, Vec<Argument>, Option<u64>); 9] = [
            ("aten::mm", vec![tensor(&[2, 3]), tensor(&[3, 5])], Some(40)),
            ("aten::mm", vec![tensor(&[2, 3]), tensor(&[3, 5]), tensor(&[2, 5])], None),
            ("aten::bmm", vec![tensor(&[7, 2, 3]), tensor(&[7, 3, 5])], Some(280)),
            ("aten::mul", vec![tensor(&[4, 1]), tensor(&[3])], Some(48)),
            ("aten::mul_", vec![tensor(&[4, 1]), tensor(&[3])], None),
            ("aten::empty", vec![value("[2, 8]"), value("4")], Some(128)),
            ("aten::empty", vec![value("[2, -8]"), value("4")], None),
            ("aten::empty", vec![value("[2, 8]"), value("99")], None),
            ("aten::gelu", vec![tensor(&[u64::MAX, 3])], Some(u64::MAX)),
        ];
        for (name, list, expected) in cases {
            let arguments = Arguments { list };
            assert_eq!(output_bytes(name, &arguments), expected, "{name} {arguments:?}");
        }
    }

    #[test]
    fn shapes_of_inputs_stand_together_or_not() {
        let convolution = |input: &[u64], weight: &[u64], groups: &str| {
            let mut list = vec![tensor(input), tensor(weight), Argument::Absent];
            list.extend(["[1, 1]"; 3].map(value));
            list.extend([value("False"), value("[0, 0]"), value(groups)]);
            list
        };
        let cases: [(&str, Vec<Argument>, Option<bool>); 10] = [
            ("aten::mm", vec![tensor(&[2, 3]), tensor(&[3, 5])], Some(true)),
            ("aten::mm", vec![tensor(&[3, 2]), tensor(&[3, 5])], Some(false)),
            ("aten::linear", vec![tensor(&[9, 2, 3]), tensor(&[5, 3])], Some(true)),
            ("aten::add", vec![tensor(&[4, 1]), tensor(&[3])], Some(true)),
            ("aten::add", vec![tensor(&[4, 2]), tensor(&[3])], Some(false)),
            ("aten::add", vec![tensor(&[4, 2]), value("3")], None),
            ("aten::convolution", convolution(&[8, 6, 9, 9], &[4, 3, 3, 3], "2"), Some(true)),
            ("aten::convolution", convolution(&[6, 9, 9], &[4, 6, 3, 3], "1"), Some(true)),
            ("aten::convolution", convolution(&[8, 3, 9, 9], &[4, 6, 3, 3], "1"), Some(false)),
            ("aten::relu", vec![tensor(&[4])], None),
        ];
        for (name, list, expected) in cases {
            let arguments = Arguments { list };
            assert_eq!(inputs_agree(name, &arguments), expected, "{name} {arguments:?}");
        }
    }
}
