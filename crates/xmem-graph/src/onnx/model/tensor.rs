//! Tensors of a file: sizes, type, and values where there are few (onnx/onnx.proto, `TensorProto`).

use super::super::fact::{Fact, Known, MAX_KNOWN};
use super::super::proto::TensorProto;
use super::{Attribute, Node};
use crate::dtype::DType;
use crate::error::GraphError;
use prost::bytes::Bytes;

/// Factors for each dimension of an image or a video.
const MAX_FACTORS: i64 = 5;

/// Sizes and type, and the values of a small tensor that is in the file.
pub(super) fn fact(tensor: &TensorProto) -> Result<Fact, GraphError> {
    let number = tensor.data_type.unwrap_or(0);
    let dtype = DType::of_onnx(number)
        .ok_or_else(|| GraphError::Format(format!("the type {number} is not supported")))?;
    let fact = Fact::of(dtype, tensor.dims.clone())?;
    let count = fact.elements();
    let is_small = usize::try_from(count).is_ok_and(|count| count <= MAX_KNOWN);
    // Weights change, so that only few values of theirs are of use: factors, bounds and scales.
    let is_weight = dtype.is_floating_point() && count > MAX_FACTORS;
    if !is_small || is_weight || tensor.data_location == Some(1) {
        return Ok(fact);
    }
    Ok(match values(tensor, dtype, count) {
        Some(known) => fact.with(known),
        None => fact,
    })
}

/// The value of a `Constant` node.
pub(super) fn constant(node: &Node) -> Option<Fact> {
    let fact = |dims: Vec<i64>, dtype, known| Some(Fact { dtype, dims, known: Some(known) });
    let (name, value) = node.attributes.iter().find(|(name, _)| name.starts_with("value"))?;
    match value {
        Attribute::Tensor(fact) => Some(fact.clone()),
        Attribute::Int(value) => fact(Vec::new(), DType::I64, Known::Ints(vec![*value])),
        Attribute::Float(value) => fact(Vec::new(), DType::F32, Known::Floats(vec![*value])),
        Attribute::Ints(values) if name == "value_ints" => {
            let size = i64::try_from(values.len()).ok()?;
            fact(vec![size], DType::I64, Known::Ints(values.clone()))
        }
        Attribute::Floats(values) => {
            let size = i64::try_from(values.len()).ok()?;
            fact(vec![size], DType::F32, Known::Floats(values.clone()))
        }
        Attribute::Ints(_) | Attribute::Text(_) => None,
    }
}

fn values(tensor: &TensorProto, dtype: DType, count: i64) -> Option<Known> {
    let count = usize::try_from(count).ok()?;
    let known = match tensor.raw_data.as_deref().filter(|raw| !raw.is_empty()) {
        Some(raw) => of_raw(raw, dtype)?,
        None if dtype == DType::F32 => Known::Floats(
            tensor.float_data.iter().flat_map(|part| f32s(part)).map(f64::from).collect(),
        ),
        None if dtype == DType::F64 => {
            Known::Floats(tensor.double_data.iter().flat_map(|part| f64s(part)).collect())
        }
        None if dtype == DType::I64 => Known::Ints(varints(&tensor.int64_data)?),
        None if dtype.is_floating_point() => {
            let bits = varints(&tensor.int32_data)?.into_iter().map(|v| v as u16);
            Known::Floats(bits.map(|bits| half(bits, dtype)).collect())
        }
        None => Known::Ints(varints(&tensor.int32_data)?),
    };
    (known.len() == count).then_some(known)
}

/// Numbers in little-endian order.
fn of_raw(raw: &[u8], dtype: DType) -> Option<Known> {
    let ints = |width: usize, of: fn(&[u8]) -> i64| {
        Some(Known::Ints(raw.chunks_exact(width).map(of).collect()))
    };
    match dtype {
        DType::Bool | DType::U8 => ints(1, |b| b[0].into()),
        DType::I8 => ints(1, |b| i8::from_le_bytes([b[0]]).into()),
        DType::I16 => ints(2, |b| i16::from_le_bytes([b[0], b[1]]).into()),
        DType::I32 => ints(4, |b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()),
        DType::I64 => {
            ints(8, |b| i64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
        }
        DType::F32 => Some(Known::Floats(f32s(raw).map(f64::from).collect())),
        DType::F64 => Some(Known::Floats(f64s(raw).collect())),
        DType::F16 | DType::BF16 => Some(Known::Floats(
            raw.chunks_exact(2).map(|b| half(u16::from_le_bytes([b[0], b[1]]), dtype)).collect(),
        )),
        DType::C64 | DType::C128 => None,
    }
}

fn f32s(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn f64s(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes
        .chunks_exact(8)
        .map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
}

fn varints(parts: &[Bytes]) -> Option<Vec<i64>> {
    let mut values = Vec::new();
    for part in parts {
        let mut part = part.as_ref();
        while !part.is_empty() && values.len() <= MAX_KNOWN {
            let value = prost::encoding::decode_varint(&mut part).ok()?;
            values.push(value.cast_signed());
        }
    }
    Some(values)
}

/// A float of 16 bits.
fn half(bits: u16, dtype: DType) -> f64 {
    if dtype == DType::BF16 {
        return f32::from_bits(u32::from(bits) << 16).into();
    }
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, Fact, Known, TensorProto, fact, half};
    use prost::bytes::Bytes;

    #[test]
    fn small_constants_have_values_in_each_of_their_forms() {
        let tensor = |data_type, dims: &[i64]| TensorProto {
            data_type: Some(data_type),
            dims: dims.to_vec(),
            ..TensorProto::default()
        };
        let raw = |tensor: TensorProto, raw: &'static [u8]| TensorProto {
            raw_data: Some(Bytes::from_static(raw)),
            ..tensor
        };
        let known = |tensor: &TensorProto| fact(tensor).map(|fact: Fact| fact.known).ok();
        let ints = |v: &[i64]| Some(Some(Known::Ints(v.to_vec())));
        assert_eq!(
            known(&raw(tensor(7, &[1]), &[254, 255, 255, 255, 255, 255, 255, 255])),
            ints(&[-2])
        );
        assert_eq!(known(&raw(tensor(6, &[2]), &[1, 0, 0, 0, 2, 0, 0, 0])), ints(&[1, 2]));
        let listed =
            TensorProto { int64_data: vec![Bytes::from_static(&[3, 172, 2])], ..tensor(7, &[2]) };
        assert_eq!(known(&listed), ints(&[3, 300]));
        let halves = raw(tensor(10, &[]), &[0, 60]);
        assert_eq!(known(&halves), Some(Some(Known::Floats(vec![1.0]))));
        // Without data, with too little of it, with data elsewhere, and a weight.
        assert_eq!(known(&tensor(7, &[2])), Some(None));
        assert_eq!(known(&raw(tensor(7, &[2]), &[1])), Some(None));
        let elsewhere =
            TensorProto { data_location: Some(1), ..raw(tensor(6, &[1]), &[1, 0, 0, 0]) };
        assert_eq!(known(&elsewhere), Some(None));
        assert_eq!(known(&raw(tensor(1, &[6]), &[0; 24])), Some(None));
        assert_eq!(known(&tensor(8, &[2])), None, "strings");
        assert_eq!(known(&tensor(1, &[1 << 30, 1 << 30])), None);
    }

    #[test]
    fn halves_are_numbers() {
        for (bits, dtype, expected) in [
            (0x3800, DType::F16, 0.5),
            (0xfc00, DType::F16, f64::NEG_INFINITY),
            (0x0001, DType::F16, 2_f64.powi(-24)),
            (0x3f80, DType::BF16, 1.0),
        ] {
            assert!((half(bits, dtype) - expected).abs() < 1e-12 || half(bits, dtype) == expected);
        }
    }
}
