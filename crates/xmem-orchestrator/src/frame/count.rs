//! Arithmetic on sizes that a trace says.

use std::iter::Product;
use std::ops::{Add, Div, Mul, Sub};
use xmem_analyzer::{DType, TensorArg};
use xmem_types::Bytes;

/// A number of elements, rows or bytes that is computed from recorded shapes. Sums and products
/// saturate: a shape of 2^32 x 2^32 x 2^32 is a very large tensor, and neither a panic nor a small one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Count(pub(crate) u64);

impl Count {
    /// The number of elements of a tensor.
    pub(crate) fn elements(tensor: &TensorArg) -> Self {
        tensor.dims.iter().copied().map(Self).product()
    }

    /// The bytes of a dense tensor of this shape and type.
    pub(crate) fn bytes(tensor: &TensorArg) -> Self {
        Self::elements(tensor).of(tensor.dtype)
    }

    /// The bytes of so many elements.
    pub(crate) fn of(self, element: DType) -> Self {
        self * element.size()
    }

    /// Rounded up to a multiple.
    pub(crate) const fn next_multiple_of(self, of: u64) -> Self {
        match self.0.checked_next_multiple_of(of) {
            Some(multiple) => Self(multiple),
            None => Self(u64::MAX),
        }
    }

    /// Divided, rounded up.
    pub(crate) const fn div_ceil(self, by: u64) -> Self {
        Self(self.0.div_ceil(by))
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for Count {
    fn from(n: u64) -> Self {
        Self(n)
    }
}

impl From<Bytes> for Count {
    fn from(bytes: Bytes) -> Self {
        Self(bytes.get())
    }
}

impl From<Count> for Bytes {
    fn from(count: Count) -> Self {
        Self(count.0)
    }
}

impl<T: Into<Count>> Mul<T> for Count {
    type Output = Self;
    fn mul(self, by: T) -> Self {
        Self(self.0.saturating_mul(by.into().0))
    }
}

impl<T: Into<Count>> Add<T> for Count {
    type Output = Self;
    fn add(self, other: T) -> Self {
        Self(self.0.saturating_add(other.into().0))
    }
}

impl<T: Into<Count>> Sub<T> for Count {
    type Output = Self;
    fn sub(self, other: T) -> Self {
        Self(self.0.saturating_sub(other.into().0))
    }
}

/// By at least one: an extent of zero leaves the count as it is.
impl<T: Into<Count>> Div<T> for Count {
    type Output = Self;
    fn div(self, by: T) -> Self {
        Self(self.0 / by.into().0.max(1))
    }
}

impl Product for Count {
    fn product<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(1), Mul::mul)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_saturate_instead_of_wrapping() {
        let huge = 1 << 32;
        let tensor =
            TensorArg { dims: vec![huge, huge, huge], strides: Vec::new(), dtype: DType::F32 };
        assert_eq!(Count::elements(&tensor), Count(u64::MAX));
        assert_eq!(Count::bytes(&tensor), Count(u64::MAX));
        assert_eq!(Count(u64::MAX) + 1, Count(u64::MAX));
        assert_eq!(Count(u64::MAX).next_multiple_of(32), Count(u64::MAX));
        assert_eq!(Count(1) - 2, Count(0));
        assert_eq!(Count(7) / 0, Count(7));
        let empty = TensorArg { dims: vec![huge, huge, huge, 0], ..tensor };
        assert_eq!(Count::elements(&empty), Count(0));
    }
}
