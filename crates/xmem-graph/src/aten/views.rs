//! Views: other sizes and strides on the same memory.

use super::{axis, recorded};
use crate::eager::Eager;
use crate::eager::arguments::{Args, args};
use crate::eager::tensor::{Tensor, count};

/// The strides of a view of other sizes; `None` if only a copy has them
/// (aten/src/ATen/TensorUtils.cpp, `computeStride`).
pub(super) fn view_strides(dims: &[i64], strides: &[i64], to: &[i64]) -> Option<Vec<i64>> {
    if dims.contains(&0) {
        return Some(crate::eager::tensor::contiguous_strides(to));
    }
    let mut result = vec![1; to.len()];
    if dims.is_empty() {
        return Some(result);
    }
    let mut view = to.len();
    let mut chunk_stride = *strides.last()?;
    let (mut elements, mut viewed) = (1_i64, 1_i64);
    for at in (0..dims.len()).rev() {
        elements = elements.saturating_mul(dims[at]);
        let ends = at == 0
            || dims[at - 1] != 1 && strides[at - 1] != elements.saturating_mul(chunk_stride);
        if !ends {
            continue;
        }
        while view > 0 && (viewed < elements || to[view - 1] == 1) {
            result[view - 1] = viewed.saturating_mul(chunk_stride);
            viewed = viewed.saturating_mul(to[view - 1]);
            view -= 1;
        }
        if viewed != elements {
            return None;
        }
        if at > 0 {
            chunk_stride = strides[at - 1];
            (elements, viewed) = (1, 1);
        }
    }
    (view == 0).then_some(result)
}

/// Sizes with the one that is -1 derived from the others (aten/src/ATen/InferSize.h).
pub(crate) fn inferred(dims: &[i64], elements: i64) -> Vec<i64> {
    let known = dims.iter().filter(|d| **d != -1).fold(1, |n, &d| i64::saturating_mul(n, d));
    dims.iter()
        .map(|&d| if d == -1 { elements.checked_div(known).unwrap_or(0) } else { d })
        .collect()
}

type Gradient = Box<dyn Fn(&Eager, &Tensor) -> Tensor>;

impl Eager {
    /// A view with its derivative.
    fn viewing(
        &self,
        (name, node): (&'static str, &'static str),
        args: Args,
        x: &Tensor,
        (dims, strides): (Vec<i64>, Vec<i64>),
        gradient: Gradient,
    ) -> Tensor {
        let result = self.primitive(name, args, || x.view(dims, strides));
        self.record(
            node,
            &recorded(&[x], &[&result]),
            |_| Vec::new(),
            move |eager, _, gradients| vec![gradients[0].as_ref().map(|g| gradient(eager, g))],
        );
        result
    }

    /// `aten::view`.
    pub(crate) fn view(&self, x: &Tensor, dims: &[i64]) -> Tensor {
        let dims = inferred(dims, x.elements());
        let Some(strides) = view_strides(x.dims(), x.strides(), &dims) else {
            return self.reshape(x, &dims);
        };
        let from = x.dims().to_vec();
        let back: Gradient = Box::new(move |eager, g| eager.reshape(g, &from));
        self.viewing(
            ("aten::view", "ViewBackward0"),
            args![x, dims],
            x,
            (dims.clone(), strides),
            back,
        )
    }

    /// `aten::reshape`: a view, or a copy where no view has the sizes.
    pub(crate) fn reshape(&self, x: &Tensor, dims: &[i64]) -> Tensor {
        let dims = inferred(dims, x.elements());
        self.call("aten::reshape", args![x, dims], || {
            if view_strides(x.dims(), x.strides(), &dims).is_some() {
                return self.view(x, &dims);
            }
            let copy = self.clone_contiguous(x);
            self.unsafe_view(&copy, &dims)
        })
    }

    /// `aten::_unsafe_view`.
    pub(crate) fn unsafe_view(&self, x: &Tensor, dims: &[i64]) -> Tensor {
        let dims = inferred(dims, x.elements());
        let strides = crate::eager::tensor::contiguous_strides(&dims);
        let from = x.dims().to_vec();
        let back: Gradient = Box::new(move |eager, g| eager.reshape(g, &from));
        let names = ("aten::_unsafe_view", "UnsafeViewBackward0");
        self.viewing(names, args![x, dims], x, (dims.clone(), strides), back)
    }

    /// `aten::flatten`.
    pub(crate) fn flatten(&self, x: &Tensor, start: i64, end: i64) -> Tensor {
        let (start, end) = (axis(start, x.rank()), axis(end, x.rank()));
        self.call("aten::flatten", args![x, start as i64, end as i64], || {
            if x.rank() > 0 && (start >= end || end >= x.rank()) {
                return x.clone();
            }
            let mut dims = x.dims().to_vec();
            if dims.is_empty() {
                return self.reshape(x, &[1]);
            }
            let merged = count(&dims[start..=end]);
            dims.splice(start..=end, [merged]);
            self.reshape(x, &dims)
        })
    }

    /// `aten::unflatten`.
    pub(crate) fn unflatten(&self, x: &Tensor, dim: i64, sizes: &[i64]) -> Tensor {
        let dim = axis(dim, x.rank());
        let Some(&size) = x.dims().get(dim) else { return x.clone() };
        let sizes = inferred(sizes, size);
        let mut dims = x.dims().to_vec();
        dims.splice(dim..=dim, sizes.iter().copied());
        self.call("aten::unflatten", args![x, dim as i64, sizes], || self.view(x, &dims))
    }

    /// `aten::t`.
    pub(crate) fn t(&self, x: &Tensor) -> Tensor {
        if x.rank() < 2 {
            return x.clone();
        }
        let back: Gradient = Box::new(Eager::t);
        self.viewing(("aten::t", "TBackward0"), args![x], x, swapped(x, 0, 1), back)
    }

    /// `aten::transpose`.
    pub(crate) fn transpose(&self, x: &Tensor, a: i64, b: i64) -> Tensor {
        let (at, to) = (axis(a, x.rank()), axis(b, x.rank()));
        let back: Gradient = Box::new(move |eager, g| eager.transpose(g, a, b));
        self.viewing(
            ("aten::transpose", "TransposeBackward0"),
            args![x, a, b],
            x,
            swapped(x, at, to),
            back,
        )
    }

    /// `aten::permute`.
    pub(crate) fn permute(&self, x: &Tensor, order: &[i64]) -> Tensor {
        let axes: Vec<usize> = order.iter().map(|&d| axis(d, x.rank())).collect();
        if axes.len() != x.rank() || axes.iter().any(|&at| at >= x.rank()) {
            return x.clone();
        }
        let dims = axes.iter().map(|&d| x.dims()[d]).collect();
        let strides = axes.iter().map(|&d| x.strides()[d]).collect();
        let mut inverse = vec![0; axes.len()];
        for (to, &from) in axes.iter().enumerate() {
            inverse[from] = to as i64;
        }
        let back: Gradient = Box::new(move |eager, g| eager.permute(g, &inverse));
        self.viewing(
            ("aten::permute", "PermuteBackward0"),
            args![x, order],
            x,
            (dims, strides),
            back,
        )
    }

    /// `aten::unsqueeze`.
    pub(crate) fn unsqueeze(&self, x: &Tensor, dim: i64) -> Tensor {
        let at = axis(dim, x.rank() + 1).min(x.rank());
        let (mut dims, mut strides) = (x.dims().to_vec(), x.strides().to_vec());
        let stride = dims.get(at).map_or(1, |d| d.saturating_mul(strides[at]));
        dims.insert(at, 1);
        strides.insert(at, stride);
        let back: Gradient = Box::new(move |eager, g| eager.squeeze(g, Some(at as i64)));
        self.viewing(
            ("aten::unsqueeze", "UnsqueezeBackward0"),
            args![x, dim],
            x,
            (dims, strides),
            back,
        )
    }

    /// `aten::squeeze`, of one dimension or of all.
    pub(crate) fn squeeze(&self, x: &Tensor, dim: Option<i64>) -> Tensor {
        let only = dim.map(|d| axis(d, x.rank()));
        let keeps = |&i: &usize| x.dims()[i] != 1 || only.is_some_and(|only| only != i);
        let kept: Vec<usize> = (0..x.rank()).filter(keeps).collect();
        let dims = kept.iter().map(|&i| x.dims()[i]).collect();
        let strides = kept.iter().map(|&i| x.strides()[i]).collect();
        let from = x.dims().to_vec();
        let places = kept.clone();
        let back: Gradient = Box::new(move |eager, g| {
            let mut strides = vec![1; from.len()];
            for (&at, &stride) in places.iter().zip(g.strides()) {
                strides[at] = stride;
            }
            eager.call("aten::unsqueeze", args![g, dim.unwrap_or(0)], || {
                g.view(from.clone(), strides)
            })
        });
        let node = if dim.is_some() { "SqueezeBackward1" } else { "SqueezeBackward0" };
        let arguments = match dim {
            Some(dim) => args![x, dim],
            None => args![x],
        };
        self.viewing(("aten::squeeze", node), arguments, x, (dims, strides), back)
    }

    /// `aten::expand`.
    pub(crate) fn expand(&self, x: &Tensor, to: &[i64]) -> Tensor {
        let leading = to.len().saturating_sub(x.rank());
        let size = |i: usize| i.checked_sub(leading).map_or(1, |i| x.dims()[i]);
        let dims: Vec<i64> =
            to.iter().enumerate().map(|(i, &d)| if d == -1 { size(i) } else { d }).collect();
        let strides = (0..dims.len())
            .map(|i| match i.checked_sub(leading) {
                Some(from) if x.dims()[from] == dims[i] => x.strides()[from],
                _ => 0,
            })
            .collect();
        let from = x.dims().to_vec();
        let back: Gradient =
            Box::new(
                move |eager, g| if g.dims() == from { g.clone() } else { eager.sum_to(g, &from) },
            );
        self.viewing(
            ("aten::expand", "ExpandBackward0"),
            args![x, to, false],
            x,
            (dims, strides),
            back,
        )
    }

    /// `aten::select`: the gradient is a tensor of zeros with the part in its place.
    pub(crate) fn select(&self, x: &Tensor, dim: i64, index: i64) -> Tensor {
        let at = axis(dim, x.rank());
        if at >= x.rank() {
            return x.clone();
        }
        let (mut dims, mut strides) = (x.dims().to_vec(), x.strides().to_vec());
        dims.remove(at);
        strides.remove(at);
        let from = x.dims().to_vec();
        let back: Gradient = Box::new(move |eager, g| {
            eager.call("aten::select_backward", args![g, from, dim, index], || {
                eager.zeros_with(g, &from)
            })
        });
        self.viewing(
            ("aten::select", "SelectBackward0"),
            args![x, dim, index],
            x,
            (dims, strides),
            back,
        )
    }

    /// `aten::slice`: the gradient is a tensor of zeros with the part in its place.
    pub(crate) fn slice(
        &self,
        x: &Tensor,
        dim: i64,
        (start, end, step): (i64, i64, i64),
    ) -> Tensor {
        let arguments = args![x, dim, start, end, step];
        let (dims, strides) = sliced(x, dim, (start, end, step));
        let from = x.dims().to_vec();
        let back: Gradient = Box::new(move |eager, g| {
            eager.call("aten::slice_backward", args![g, from, dim, start, end, step], || {
                eager.zeros_with(g, &from)
            })
        });
        self.viewing(("aten::slice", "SliceBackward0"), arguments, x, (dims, strides), back)
    }

    fn zeros_with(&self, part: &Tensor, dims: &[i64]) -> Tensor {
        let whole = self.zeros_called(dims, part.dtype());
        self.call("aten::copy_", args![part, part, false], || ());
        whole
    }

    /// `aten::narrow`.
    pub(crate) fn narrow(&self, x: &Tensor, dim: i64, start: i64, length: i64) -> Tensor {
        self.call("aten::narrow", args![x, dim, start, length], || {
            self.slice(x, dim, (start, start.saturating_add(length), 1))
        })
    }

    /// `aten::split` and `split_with_sizes`, `chunk` and their unsafe forms: parts of these lengths. Their
    /// gradients are joined.
    pub(crate) fn split(
        &self,
        (name, node): (&'static str, &'static str),
        x: &Tensor,
        lengths: &[i64],
        dim: i64,
    ) -> Vec<Tensor> {
        let mut start = 0;
        let parts: Vec<Tensor> = self.primitive(name, args![x, lengths, dim], || {
            lengths
                .iter()
                .map(|&length| {
                    let (dims, strides) = sliced(x, dim, (start, start + length, 1));
                    start += length;
                    x.view(dims, strides)
                })
                .collect()
        });
        let sizes: Vec<Vec<i64>> = parts.iter().map(|p| p.dims().to_vec()).collect();
        let results: Vec<&Tensor> = parts.iter().collect();
        self.record(
            node,
            &recorded(&[x], &results),
            |_| Vec::new(),
            move |eager, _, gradients| {
                let dtype = gradients.iter().flatten().next().map(Tensor::dtype);
                let gradients: Vec<Tensor> = gradients
                    .iter()
                    .zip(&sizes)
                    .filter_map(|(g, dims)| {
                        g.clone().or_else(|| dtype.map(|dtype| eager.zeros_called(dims, dtype)))
                    })
                    .collect();
                vec![Some(eager.cat(&gradients, dim))]
            },
        );
        parts
    }

    /// `aten::unbind`.
    pub(crate) fn unbind(&self, x: &Tensor, dim: i64) -> Vec<Tensor> {
        let at = axis(dim, x.rank());
        if at >= x.rank() {
            return vec![x.clone()];
        }
        let count = x.dim(dim);
        let parts: Vec<Tensor> = self.primitive("aten::unbind", args![x, dim], || {
            let (mut dims, mut strides) = (x.dims().to_vec(), x.strides().to_vec());
            dims.remove(at);
            strides.remove(at);
            (0..count).map(|_| x.view(dims.clone(), strides.clone())).collect()
        });
        let results: Vec<&Tensor> = parts.iter().collect();
        self.record(
            "UnbindBackward0",
            &recorded(&[x], &results),
            |_| Vec::new(),
            move |eager, _, gradients| {
                let Some(model) = gradients.iter().flatten().next().cloned() else {
                    return Vec::new();
                };
                let gradients: Vec<Tensor> = gradients
                    .iter()
                    .map(|g| {
                        g.clone().unwrap_or_else(|| eager.zeros_called(model.dims(), model.dtype()))
                    })
                    .collect();
                vec![Some(eager.stack(&gradients, dim))]
            },
        );
        parts
    }

    /// `aten::cat`. The gradients are parts of the result's.
    pub(crate) fn cat(&self, tensors: &[Tensor], dim: i64) -> Tensor {
        // Empty tensors of one dimension are left out (legacy of `cat`).
        let real: Vec<&Tensor> =
            tensors.iter().filter(|t| !(t.rank() == 1 && t.dims()[0] == 0)).collect();
        let Some(first) = real.first() else { return tensors[0].clone() };
        let at = axis(dim, first.rank());
        if real.iter().any(|t| at >= t.rank()) {
            return tensors[0].clone();
        }
        let mut dims = first.dims().to_vec();
        dims[at] = real.iter().fold(0, |sum, t| i64::saturating_add(sum, t.dims()[at]));
        let dtype = real.iter().fold(first.dtype(), |dtype, t| dtype.promoted(t.dtype()));
        let result = self.primitive("aten::cat", args![tensors, dim], || {
            let channels_last =
                real.iter().all(|t| t.rank() == 4 && !t.is_contiguous() && t.strides()[1] == 1);
            if channels_last { self.channels_last(&dims, dtype) } else { self.empty(&dims, dtype) }
        });
        let lengths: Vec<i64> =
            tensors.iter().map(|t| t.dims().get(at).copied().unwrap_or(0)).collect();
        let arguments: Vec<&Tensor> = tensors.iter().collect();
        self.record(
            "CatBackward0",
            &recorded(&arguments, &[&result]),
            |_| Vec::new(),
            move |eager, saved, gradients| {
                let Some(gradient) = &gradients[0] else { return Vec::new() };
                let mut start = 0;
                lengths
                    .iter()
                    .enumerate()
                    .map(|(argument, &length)| {
                        let from = start;
                        start += length;
                        saved.needs(argument).then(|| eager.narrow(gradient, dim, from, length))
                    })
                    .collect()
            },
        );
        result
    }

    /// `aten::stack`.
    pub(crate) fn stack(&self, tensors: &[Tensor], dim: i64) -> Tensor {
        let mut dims = tensors[0].dims().to_vec();
        let at = axis(dim, dims.len() + 1).min(dims.len());
        dims.insert(at, tensors.len() as i64);
        let result = self.primitive("aten::stack", args![tensors, dim], || {
            self.call("aten::cat", args![tensors, dim], || self.empty(&dims, tensors[0].dtype()))
        });
        let arguments: Vec<&Tensor> = tensors.iter().collect();
        let count = tensors.len();
        self.record(
            "StackBackward0",
            &recorded(&arguments, &[&result]),
            |_| Vec::new(),
            move |eager, saved, gradients| {
                let Some(gradient) = &gradients[0] else { return Vec::new() };
                (0..count)
                    .map(|i| saved.needs(i).then(|| eager.select(gradient, dim, i as i64)))
                    .collect()
            },
        );
        result
    }

    /// `aten::alias`.
    pub(crate) fn alias(&self, x: &Tensor) -> Tensor {
        let whole = (x.dims().to_vec(), x.strides().to_vec());
        let back: Gradient = Box::new(|_, g| g.clone());
        self.viewing(("aten::alias", "AliasBackward0"), args![x], x, whole, back)
    }

    /// `aten::detach`.
    pub(crate) fn detach(&self, x: &Tensor) -> Tensor {
        self.primitive("aten::detach", args![x], || x.detached())
    }

    /// `aten::roll`: one copy for each dimension.
    pub(crate) fn roll(&self, x: &Tensor, shifts: &[i64], dims: &[i64]) -> Tensor {
        let rolled = self.primitive("aten::roll", args![x, shifts, dims], || {
            dims.iter().fold(x.clone(), |x, _| {
                self.call("aten::roll", args![x], || {
                    self.call("aten::cat", args![x, x], || self.empty(x.dims(), x.dtype()))
                })
            })
        });
        let (shifts, dims): (Vec<i64>, Vec<i64>) =
            (shifts.iter().rev().map(|s| -s).collect(), dims.iter().rev().copied().collect());
        self.record(
            "RollBackward0",
            &recorded(&[x], &[&rolled]),
            |_| Vec::new(),
            move |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| eager.roll(g, &shifts, &dims))]
            },
        );
        rolled
    }

    /// `aten::constant_pad_nd`.
    pub(crate) fn constant_pad(&self, x: &Tensor, pad: &[i64], value: f64) -> Tensor {
        let mut dims = x.dims().to_vec();
        for (pair, ends) in pad.chunks(2).enumerate() {
            let at = dims.len().checked_sub(1 + pair);
            if let Some(size) = at.and_then(|at| dims.get_mut(at)) {
                *size = ends.iter().fold(*size, |size, end| size.saturating_add(*end)).max(0);
            }
        }
        let shrinks = pad.iter().all(|p| *p <= 0);
        let result = self.primitive("aten::constant_pad_nd", args![x, pad, value], || {
            if shrinks {
                // Narrowed, then copied.
                return self.call("aten::clone", args![x], || self.empty(&dims, x.dtype()));
            }
            let padded = self.empty_called(&dims, x.dtype());
            self.call("aten::fill_", args![padded, value], || ());
            self.call("aten::copy_", args![x, x, false], || ());
            padded
        });
        let back: Vec<i64> = pad.iter().map(|p| -p).collect();
        self.record(
            "ConstantPadNdBackward0",
            &recorded(&[x], &[&result]),
            |_| Vec::new(),
            move |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| eager.constant_pad(g, &back, 0.0))]
            },
        );
        result
    }

    /// `aten::repeat`: a copy.
    pub(crate) fn repeat(&self, x: &Tensor, times: &[i64]) -> Tensor {
        let leading = times.len().saturating_sub(x.rank());
        let dims: Vec<i64> = times
            .iter()
            .enumerate()
            .map(|(i, &n)| n.saturating_mul(i.checked_sub(leading).map_or(1, |i| x.dims()[i])))
            .collect();
        let result = self.primitive("aten::repeat", args![x, times], || {
            let result = self.empty_called(&dims, x.dtype());
            self.call("aten::copy_", args![result, x, false], || ());
            result
        });
        let from = x.dims().to_vec();
        let times = times.to_vec();
        self.record(
            "RepeatBackward0",
            &recorded(&[x], &[&result]),
            |_| Vec::new(),
            move |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| eager.repeat_backward(g, &times, &from))]
            },
        );
        result
    }

    /// FunctionsManual.cpp, `repeat_backward`: a reshape and a sum.
    fn repeat_backward(&self, gradient: &Tensor, times: &[i64], dims: &[i64]) -> Tensor {
        let leading = times.len().saturating_sub(dims.len());
        let (mut shape, mut axes) = (Vec::new(), Vec::new());
        for (at, &n) in times.iter().enumerate() {
            if n != 1 || at < leading {
                axes.push(shape.len() as i64);
                shape.push(n);
            }
            if let Some(from) = at.checked_sub(leading) {
                shape.push(dims[from]);
            }
        }
        if axes.is_empty() {
            return gradient.clone();
        }
        let reshaped = self.reshape(gradient, &shape);
        self.sum(&reshaped, &super::Axes::Some(axes), false, None)
    }
}

fn swapped(x: &Tensor, a: usize, b: usize) -> (Vec<i64>, Vec<i64>) {
    let (mut dims, mut strides) = (x.dims().to_vec(), x.strides().to_vec());
    if a < dims.len() && b < dims.len() {
        dims.swap(a, b);
        strides.swap(a, b);
    }
    (dims, strides)
}

/// Sizes and strides of a part.
fn sliced(x: &Tensor, dim: i64, (start, end, step): (i64, i64, i64)) -> (Vec<i64>, Vec<i64>) {
    let at = axis(dim, x.rank());
    let (mut dims, mut strides) = (x.dims().to_vec(), x.strides().to_vec());
    if at >= dims.len() {
        return (dims, strides);
    }
    let size = dims[at];
    let clamp = |v: i64| if v < 0 { v.saturating_add(size) } else { v }.clamp(0, size);
    let (start, end, step) = (clamp(start), clamp(end), step.max(1));
    dims[at] = end.saturating_sub(start).max(0).saturating_add(step - 1) / step;
    strides[at] = strides[at].saturating_mul(step);
    (dims, strides)
}
