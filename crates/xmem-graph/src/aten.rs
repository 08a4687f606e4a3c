//! ATen's operators as PyTorch runs them on a CPU: what each allocates, what it keeps for its gradient, and
//! what its gradient allocates. A derivative cites its line of tools/autograd/derivatives.yaml by its name; a
//! composition, its function of aten/src/ATen/native.

mod activation;
mod arithmetic;
mod attention;
mod convolution;
mod creation;
mod einsum;
mod embedding;
mod indexing;
mod losses;
mod normalization;
mod pooling;
mod products;
mod reductions;
mod views;

pub(crate) use activation::Activation;
pub(crate) use arithmetic::{Binary, Operand, SavesFor};
pub(crate) use attention::Attention;
pub(crate) use convolution::{Geometry, spread};
pub(crate) use losses::Reduction;
pub(crate) use normalization::BatchNorm;
pub(crate) use pooling::Window;
pub(crate) use reductions::Axes;

use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, args};
use crate::eager::tensor::{Tensor, contiguous_strides, preserved_strides, wrapped};

/// Sizes of a result of tensors that are broadcast together.
fn broadcast(a: &[i64], b: &[i64]) -> Vec<i64> {
    let rank = a.len().max(b.len());
    let at = |dims: &[i64], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    (0..rank).map(|i| if at(a, i) == 1 { at(b, i) } else { at(a, i) }).collect()
}

impl Eager {
    /// A new tensor for the result of an elementwise operator (aten/src/ATen/TensorIterator.cpp): it lies in
    /// memory as an input of its size does.
    pub(crate) fn elementwise(&self, inputs: &[&Tensor], dtype: DType) -> Tensor {
        let dims = inputs.iter().fold(Vec::new(), |dims, t| broadcast(&dims, t.dims()));
        match inputs.iter().find(|t| t.dims() == dims && !t.strides().contains(&0)) {
            Some(model) => self.like_of(model, dtype),
            None => self.empty(&dims, dtype),
        }
    }

    /// `Tensor.to(dtype)`: the same tensor if it has the type.
    pub(crate) fn to_dtype(&self, x: &Tensor, dtype: DType) -> Tensor {
        let arguments = args![x, dtype.number(), false, false, Absent];
        self.call("aten::to", arguments, || {
            if x.dtype() == dtype { x.clone() } else { self.to_copy(x, dtype) }
        })
    }

    /// `aten::_to_copy`.
    fn to_copy(&self, x: &Tensor, dtype: DType) -> Tensor {
        let arguments = args![x, dtype.number(), Absent, Absent, Absent, false, Absent];
        let copy = self.primitive("aten::_to_copy", arguments, || {
            let copy = self.empty_strided(x.dims().to_vec(), preserved_strides(x), dtype);
            self.call("aten::copy_", args![copy, x, false], || ());
            copy
        });
        let from = x.dtype();
        self.record(
            "ToCopyBackward0",
            &recorded(&[x], &[&copy]),
            |_| Vec::new(),
            move |eager, _, gradients| vec![gradients[0].as_ref().map(|g| eager.to_dtype(g, from))],
        );
        copy
    }

    /// `at::sum_to`: sums over the dimensions that were broadcast.
    pub(crate) fn sum_to(&self, x: &Tensor, dims: &[i64]) -> Tensor {
        let leading = x.rank().saturating_sub(dims.len());
        let axes: Vec<i64> = (0..x.rank())
            .filter(|&i| i < leading || dims[i - leading] == 1 && x.dims()[i] != 1)
            .filter_map(|i| i64::try_from(i).ok())
            .collect();
        let sum =
            if axes.is_empty() { x.clone() } else { self.sum(x, &Axes::Some(axes), true, None) };
        if sum.dims() == dims { sum } else { self.view(&sum, dims) }
    }

    /// `aten::contiguous`.
    pub(crate) fn contiguous(&self, x: &Tensor) -> Tensor {
        if x.is_contiguous() {
            return x.clone();
        }
        self.call("aten::contiguous", args![x, 0_i64], || self.clone_contiguous(x))
    }

    /// `aten::clone` into a contiguous tensor.
    pub(crate) fn clone_contiguous(&self, x: &Tensor) -> Tensor {
        self.clone_into(x, contiguous_strides(x.dims()), 0)
    }

    /// `aten::clone` that keeps the layout.
    pub(crate) fn clone_like(&self, x: &Tensor) -> Tensor {
        self.clone_into(x, preserved_strides(x), 1)
    }

    fn clone_into(&self, x: &Tensor, strides: Vec<i64>, format: i64) -> Tensor {
        let copy = self.primitive("aten::clone", args![x, format], || {
            let copy = self.call("aten::empty_like", args![x], || {
                self.empty_strided(x.dims().to_vec(), strides, x.dtype())
            });
            self.call("aten::copy_", args![copy, x, false], || ());
            copy
        });
        self.record(
            "CloneBackward0",
            &recorded(&[x], &[&copy]),
            |_| Vec::new(),
            |_, _, gradients| vec![gradients[0].clone()],
        );
        copy
    }

    /// `aten::zeros`, within a backward function.
    fn zeros_called(&self, dims: &[i64], dtype: DType) -> Tensor {
        let arguments = args![dims, dtype.number(), 0_i64, Absent, Absent];
        self.call("aten::zeros", arguments, || {
            let zeros = self.empty_called(dims, dtype);
            self.call("aten::zero_", args![zeros], || ());
            zeros
        })
    }
}

/// Arguments and results of a call that is noted.
pub(crate) fn recorded<'a>(
    arguments: &'a [&'a Tensor],
    results: &'a [&'a Tensor],
) -> crate::eager::autograd::Recorded<'a> {
    crate::eager::autograd::Recorded { arguments, results }
}

/// A dimension, counted from the front; 0 for a scalar.
fn axis(at: i64, rank: usize) -> usize {
    wrapped(at, rank.max(1)).unwrap_or(0)
}
