//! Sums, means and other reductions.

use super::{axis, recorded};
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, Args, Argument, args};
use crate::eager::tensor::Tensor;

/// The dimensions of a reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Axes {
    All,
    Some(Vec<i64>),
}

impl Axes {
    fn reduces(&self, rank: usize) -> Vec<bool> {
        match self {
            Self::All => vec![true; rank],
            Self::Some(list) if list.is_empty() => vec![true; rank],
            Self::Some(list) => {
                let mut reduces = vec![false; rank];
                for &at in list {
                    if let Some(slot) = reduces.get_mut(axis(at, rank)) {
                        *slot = true;
                    }
                }
                reduces
            }
        }
    }

    fn result(&self, x: &Tensor, keep: bool) -> Vec<i64> {
        let reduces = self.reduces(x.rank());
        let pairs = x.dims().iter().zip(reduces);
        pairs
            .filter_map(|(&d, reduced)| if !reduced { Some(d) } else { keep.then_some(1) })
            .collect()
    }
}

impl Argument for Axes {
    fn write(&self, args: &mut Args) {
        match self {
            Self::All => Absent.write(args),
            Self::Some(list) => list.write(args),
        }
    }
}

impl Eager {
    /// `aten::sum`.
    pub(crate) fn sum(&self, x: &Tensor, axes: &Axes, keep: bool, dtype: Option<DType>) -> Tensor {
        let dtype =
            dtype.unwrap_or(if x.dtype().is_differentiable() { x.dtype() } else { DType::I64 });
        let node = if *axes == Axes::All { "SumBackward0" } else { "SumBackward1" };
        self.reduce(("aten::sum", node), x, (axes, keep), dtype, Self::spread_gradient)
    }

    /// `aten::mean`.
    pub(crate) fn mean(&self, x: &Tensor, axes: &Axes, keep: bool, dtype: Option<DType>) -> Tensor {
        let node = if *axes == Axes::All { "MeanBackward0" } else { "MeanBackward1" };
        self.reduce(
            ("aten::mean", node),
            x,
            (axes, keep),
            dtype.unwrap_or(x.dtype()),
            |eager, g, dims| {
                let spread = eager.spread_gradient(g, dims);
                eager.call("aten::div", args![spread, 1_i64], || eager.empty(dims, g.dtype()))
            },
        )
    }

    /// A gradient over all that was reduced (FunctionsManual.cpp, `sum_backward`): a view.
    fn spread_gradient(&self, g: &Tensor, dims: &[i64]) -> Tensor {
        self.call("aten::expand", args![g, dims, false], || {
            let strides = if g.rank() == dims.len() {
                g.dims()
                    .iter()
                    .zip(g.strides())
                    .zip(dims)
                    .map(|((d, s), to)| if d == to { *s } else { 0 })
                    .collect()
            } else {
                vec![0; dims.len()]
            };
            g.view(dims.to_vec(), strides)
        })
    }

    fn reduce(
        &self,
        (name, node): (&'static str, &'static str),
        x: &Tensor,
        (axes, keep): (&Axes, bool),
        dtype: DType,
        gradient: impl Fn(&Self, &Tensor, &[i64]) -> Tensor + 'static,
    ) -> Tensor {
        let dims = axes.result(x, keep);
        let result =
            self.primitive(name, args![x, axes, keep, Absent], || self.empty(&dims, dtype));
        let from = x.dims().to_vec();
        let kept = axes.result(x, true);
        self.record(
            node,
            &recorded(&[x], &[&result]),
            |_| Vec::new(),
            move |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let whole = if g.rank() == from.len() {
                        g.clone()
                    } else {
                        g.view(kept.clone(), unreduced(g, &kept))
                    };
                    gradient(eager, &whole, &from)
                })]
            },
        );
        result
    }

    /// `aten::var` and `std` over dimensions (FunctionsManual.cpp, `var_backward`).
    pub(crate) fn variance(
        &self,
        name: &'static str,
        x: &Tensor,
        axes: &Axes,
        keep: bool,
    ) -> Tensor {
        let dims = axes.result(x, keep);
        let result =
            self.primitive(name, args![x, axes, Absent, keep], || self.empty(&dims, x.dtype()));
        let deviates = name == "aten::std";
        let save = |_: &[bool]| vec![Some(x.clone()), deviates.then(|| result.clone())];
        let axes = axes.clone();
        let node = if deviates { "StdBackward0" } else { "VarBackward0" };
        self.record(node, &recorded(&[x], &[&result]), save, move |eager, saved, gradients| {
            vec![gradients[0].as_ref().map(|g| {
                let x = saved.tensor(0);
                let scaled = eager.like_called("aten::mul", g);
                let mean = eager.call("aten::mean", args![x, axes, true, Absent], || {
                    eager.empty(&axes.result(x, true), x.dtype())
                });
                let centered = eager.call("aten::sub", args![x, mean, 1_i64], || eager.like(x));
                drop(mean);
                eager.call("aten::mul", args![scaled, centered], || eager.like(x))
            })]
        });
        result
    }

    /// `aten::var_mean`.
    pub(crate) fn var_mean(&self, x: &Tensor, axes: &Axes, keep: bool) -> (Tensor, Tensor) {
        (self.variance("aten::var", x, axes, keep), self.mean(x, axes, keep, None))
    }

    /// `aten::linalg_vector_norm` of order two.
    pub(crate) fn vector_norm(&self, x: &Tensor, axes: &Axes, keep: bool) -> Tensor {
        let dims = axes.result(x, keep);
        let arguments = args![x, 2.0, axes, keep, Absent];
        let result =
            self.primitive("aten::linalg_vector_norm", arguments, || self.empty(&dims, x.dtype()));
        let save = |_: &[bool]| vec![Some(x.clone()), Some(result.clone())];
        let node = "LinalgVectorNormBackward0";
        self.record(node, &recorded(&[x], &[&result]), save, |eager, saved, gradients| {
            vec![gradients[0].as_ref().map(|g| {
                let (x, norm) = (saved.tensor(0), saved.tensor(1));
                let direction = eager.call("aten::div", args![x, norm], || eager.like(x));
                let zero =
                    eager.call("aten::eq", args![norm, 0_i64], || eager.like_of(norm, DType::Bool));
                eager.call("aten::masked_fill_", args![direction, zero, 0_i64], || ());
                eager.call("aten::mul", args![g, direction], || eager.like(x))
            })]
        });
        result
    }

    /// Reductions whose result has no gradient.
    pub(crate) fn reduced_plain(
        &self,
        name: &'static str,
        x: &Tensor,
        axes: &Axes,
        keep: bool,
        dtype: DType,
    ) -> Tensor {
        let dims = axes.result(x, keep);
        self.primitive(name, args![x, axes, keep], || self.empty(&dims, dtype))
    }

    /// `aten::max` and `min` over a dimension: values and places (FunctionsManual.cpp,
    /// `value_selecting_reduction_backward`).
    pub(crate) fn extreme(
        &self,
        (name, node): (&'static str, &'static str),
        x: &Tensor,
        dim: i64,
        keep: bool,
    ) -> (Tensor, Tensor) {
        let axes = Axes::Some(vec![dim]);
        let dims = axes.result(x, keep);
        let (values, indices) = self.primitive(name, args![x, dim, keep], || {
            (self.empty(&dims, x.dtype()), self.empty(&dims, DType::I64))
        });
        self.selected(node, x, (&values, &indices));
        (values, indices)
    }

    /// The gradient of values that were chosen: zeros, and each in its place.
    pub(super) fn selected(
        &self,
        node: &'static str,
        x: &Tensor,
        (values, indices): (&Tensor, &Tensor),
    ) {
        let from = x.dims().to_vec();
        let save = |_: &[bool]| vec![Some(indices.clone())];
        self.record(node, &recorded(&[x], &[values]), save, move |eager, saved, gradients| {
            vec![gradients[0].as_ref().map(|g| {
                let arguments = args![g, 0_i64, saved.tensor(0), from, true];
                eager.call("aten::value_selecting_reduction_backward", arguments, || {
                    let zeros = eager.zeros_called(&from, g.dtype());
                    eager.call("aten::scatter_", args![zeros, 0_i64, saved.tensor(0), g], || ());
                    zeros
                })
            })]
        });
    }

    /// `aten::amax`, `aten::max` of all: the gradient goes where the value is.
    pub(crate) fn extreme_value(
        &self,
        (name, node): (&'static str, &'static str),
        x: &Tensor,
        axes: &Axes,
        keep: bool,
    ) -> Tensor {
        let dims = axes.result(x, keep);
        let result = self.primitive(name, args![x, axes, keep], || self.empty(&dims, x.dtype()));
        let save = |_: &[bool]| vec![Some(x.clone()), Some(result.clone())];
        self.record(node, &recorded(&[x], &[&result]), save, |eager, saved, gradients| {
            vec![gradients[0].as_ref().map(|g| {
                let x = saved.tensor(0);
                let mask = eager
                    .call("aten::eq", args![x, saved.tensor(1)], || eager.like_of(x, DType::Bool));
                let scaled =
                    eager.call("aten::mul", args![mask, g], || eager.like_of(x, g.dtype()));
                eager.call("aten::div", args![scaled, g], || eager.like(&scaled))
            })]
        });
        result
    }

    /// `aten::cumsum`: the gradient is a sum from the other side.
    pub(crate) fn cumsum(&self, x: &Tensor, dim: i64, dtype: Option<DType>) -> Tensor {
        let dtype =
            dtype.unwrap_or(if x.dtype().is_differentiable() { x.dtype() } else { DType::I64 });
        let result = self.primitive("aten::cumsum", args![x, dim, Absent], || {
            let wide = (x.dtype() != dtype).then(|| {
                self.call("aten::to", args![x, dtype.number()], || self.like_of(x, dtype))
            });
            let result = self.empty(x.dims(), dtype);
            drop(wide);
            result
        });
        self.record(
            "CumsumBackward0",
            &recorded(&[x], &[&result]),
            |_| Vec::new(),
            move |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let flipped = eager.call("aten::flip", args![g, [dim]], || eager.like(g));
                    let sums =
                        eager.call("aten::cumsum", args![flipped, dim, Absent], || eager.like(g));
                    drop(flipped);
                    eager.call("aten::flip", args![sums, [dim]], || eager.like(g))
                })]
            },
        );
        result
    }

    /// `aten::logsumexp`.
    pub(crate) fn logsumexp(&self, x: &Tensor, axes: &Axes, keep: bool) -> Tensor {
        let dims = axes.result(x, keep);
        let result = self.primitive("aten::logsumexp", args![x, axes, keep], || {
            let highest = self.empty(&axes.result(x, true), x.dtype());
            let shifted = self.call("aten::sub", args![x, highest, 1_i64], || self.like(x));
            let result = self.empty(&dims, x.dtype());
            drop((highest, shifted));
            result
        });
        let save = |_: &[bool]| vec![Some(x.clone()), Some(result.clone())];
        self.record(
            "LogsumexpBackward0",
            &recorded(&[x], &[&result]),
            save,
            |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let x = saved.tensor(0);
                    let difference =
                        eager.call("aten::sub", args![x, saved.tensor(1), 1_i64], || eager.like(x));
                    let share = eager.call("aten::exp", args![difference], || eager.like(x));
                    drop(difference);
                    eager.call("aten::mul", args![g, share], || eager.like(x))
                })]
            },
        );
        result
    }
}

/// Strides of a gradient with its reduced dimensions put back.
fn unreduced(g: &Tensor, kept: &[i64]) -> Vec<i64> {
    let mut given = g.dims().iter().zip(g.strides()).peekable();
    kept.iter()
        .map(|&d| match given.peek() {
            Some(&(&size, &stride)) if size == d => {
                given.next();
                stride
            }
            _ => 1,
        })
        .collect()
}
