//! Tensors out of nothing.

use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, args};
use crate::eager::tensor::Tensor;

impl Eager {
    /// `aten::zeros`, `ones`, `full`, `rand`, `arange` and the like.
    pub(crate) fn created(&self, name: &'static str, dims: &[i64], dtype: DType) -> Tensor {
        let arguments = args![dims, dtype.number(), 0_i64, Absent, Absent];
        self.primitive(name, arguments, || self.empty_called(dims, dtype))
    }

    /// `aten::zeros_like` and the like.
    pub(crate) fn created_like(
        &self,
        name: &'static str,
        x: &Tensor,
        dtype: Option<DType>,
    ) -> Tensor {
        let dtype = dtype.unwrap_or(x.dtype());
        self.primitive(name, args![x], || {
            self.call("aten::empty_like", args![x], || self.like_of(x, dtype))
        })
    }
}
