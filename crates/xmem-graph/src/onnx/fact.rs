//! What is known of a value while a graph is read: sizes, type, and the numbers of small constants.

use crate::dtype::DType;
use crate::error::GraphError;

/// Larger tensors are refused, as torch.export's are.
pub(super) const LARGEST: i64 = 1 << 40;

/// Constants with more elements are tensors whose values do not matter.
pub(super) const MAX_KNOWN: usize = 1024;

/// As PyTorch has it (c10/core/TensorImpl.h).
const MAX_DIMENSIONS: usize = 64;

/// Sizes and type of a tensor, with its values where arithmetic of shapes may need them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) dtype: DType,
    pub(super) dims: Vec<i64>,
    pub(super) known: Option<Known>,
}

/// Values of a small constant.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

impl Fact {
    /// A tensor whose values are not known.
    pub(super) fn of(dtype: DType, dims: Vec<i64>) -> Result<Self, GraphError> {
        if dims.len() > MAX_DIMENSIONS {
            return Err(GraphError::Format(format!("a tensor has {} dimensions", dims.len())));
        }
        if let Some(negative) = dims.iter().find(|d| **d < 0) {
            return Err(GraphError::Format(format!("a tensor has the size {negative}")));
        }
        // A size of zero hides no others.
        let product = dims.iter().try_fold(1_i64, |product, d| product.checked_mul((*d).max(1)));
        match product {
            Some(product) if product <= LARGEST => Ok(Self { dtype, dims, known: None }),
            _ => Err(GraphError::Huge),
        }
    }

    /// A constant of whole numbers.
    pub(super) fn ints(dims: Vec<i64>, values: Vec<i64>) -> Self {
        Self { dtype: DType::I64, dims, known: Some(Known::Ints(values)) }
    }

    pub(super) fn with(self, known: Known) -> Self {
        Self { known: Some(known), ..self }
    }

    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }

    pub(super) fn elements(&self) -> i64 {
        elements(&self.dims).unwrap_or(i64::MAX)
    }

    /// A dimension from either end.
    pub(super) fn axis(&self, axis: i64) -> Result<usize, GraphError> {
        place(axis, self.rank())
    }

    pub(super) fn known_ints(&self) -> Option<&[i64]> {
        match self.known.as_ref()? {
            Known::Ints(ints) => Some(ints),
            Known::Floats(_) => None,
        }
    }

    /// The only value of a constant of one element.
    pub(super) fn scalar(&self) -> Option<f64> {
        match self.known.as_ref()? {
            Known::Ints(ints) if ints.len() == 1 => ints.first().map(|&v| v as f64),
            Known::Floats(floats) if floats.len() == 1 => floats.first().copied(),
            _ => None,
        }
    }
}

impl Known {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Ints(ints) => ints.len(),
            Self::Floats(floats) => floats.len(),
        }
    }

    /// The values at these places, in this order.
    pub(super) fn at(&self, places: &[usize]) -> Option<Self> {
        Some(match self {
            Self::Ints(v) => {
                Self::Ints(places.iter().map(|&at| v.get(at).copied()).collect::<Option<_>>()?)
            }
            Self::Floats(v) => {
                Self::Floats(places.iter().map(|&at| v.get(at).copied()).collect::<Option<_>>()?)
            }
        })
    }

    pub(super) fn floats(&self) -> Vec<f64> {
        match self {
            Self::Ints(ints) => ints.iter().map(|&v| v as f64).collect(),
            Self::Floats(floats) => floats.clone(),
        }
    }
}

/// The product of sizes.
pub(super) fn elements(dims: &[i64]) -> Option<i64> {
    dims.iter().try_fold(1_i64, |product, d| product.checked_mul(*d))
}

/// A dimension from either end as a place.
pub(super) fn place(axis: i64, rank: usize) -> Result<usize, GraphError> {
    let rank = rank as i64;
    let at = if axis < 0 { axis.saturating_add(rank) } else { axis };
    if (0..rank).contains(&at) {
        Ok(at as usize)
    } else {
        Err(GraphError::Format(format!("axis {axis} of a tensor with {rank} dimensions")))
    }
}

/// Sizes of tensors that are broadcast to each other (ONNX, "Multidirectional Broadcasting").
pub(super) fn broadcast<'d>(
    all: impl IntoIterator<Item = &'d [i64]>,
) -> Result<Vec<i64>, GraphError> {
    let mut result: Vec<i64> = Vec::new();
    for dims in all {
        if dims.len() > result.len() {
            result.splice(0..0, std::iter::repeat_n(1, dims.len() - result.len()));
        }
        let skipped = result.len() - dims.len();
        for (known, &own) in result[skipped..].iter_mut().zip(dims) {
            match (*known, own) {
                (1, own) => *known = own,
                (known, own) if known == own || own == 1 => {}
                _ => {
                    return Err(GraphError::Shapes(format!(
                        "{dims:?} cannot be broadcast with {result:?}"
                    )));
                }
            }
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::{Fact, broadcast};
    use crate::dtype::DType;

    #[test]
    fn sizes_are_broadcast_from_the_last() {
        for (a, b, expected) in [
            (vec![2, 3], vec![3], Some(vec![2, 3])),
            (vec![4, 1, 3], vec![2, 1], Some(vec![4, 2, 3])),
            (vec![], vec![5], Some(vec![5])),
            (vec![2], vec![3], None),
        ] {
            assert_eq!(broadcast([a.as_slice(), b.as_slice()]).ok(), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn tensors_that_no_machine_holds_are_refused() {
        assert!(Fact::of(DType::F32, vec![1 << 62, 1 << 62]).is_err());
        assert!(Fact::of(DType::F32, vec![-1]).is_err());
        assert!(Fact::of(DType::F32, vec![1; 65]).is_err());
        assert!(Fact::of(DType::F32, vec![0, 1 << 40, 1 << 40]).is_err());
        assert!(Fact::of(DType::F32, vec![0, 7]).is_ok());
    }
}
