//! Pooling and resampling.

use super::convolution::lies_channels_last;
use super::{Axes, recorded};
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, args};
use crate::eager::tensor::Tensor;

/// The numbers of a window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) kernel: Vec<i64>,
    pub(crate) stride: Vec<i64>,
    pub(crate) padding: Vec<i64>,
    pub(crate) dilation: Vec<i64>,
    pub(crate) ceil: bool,
}

impl Window {
    /// Sizes of the result (aten/src/ATen/native/Pool.h, `pooling_output_shape`).
    pub(crate) fn result(&self, x: &[i64]) -> Vec<i64> {
        let leading = x.len().saturating_sub(self.kernel.len());
        let mut dims = x.to_vec();
        for at in 0..self.kernel.len().min(x.len()) {
            let (size, kernel, stride, pad) =
                (x[leading + at], self.kernel[at], self.stride[at].max(1), self.padding[at]);
            let reach =
                self.dilation[at].saturating_mul(kernel.saturating_sub(1)).saturating_add(1);
            let span = size.saturating_add(pad.saturating_mul(2)).saturating_sub(reach);
            let mut steps = (if self.ceil { span.saturating_add(stride - 1) } else { span }
                / stride)
                .saturating_add(1);
            // The last window begins inside the image or its left padding.
            if self.ceil && (steps - 1).saturating_mul(stride) >= size.saturating_add(pad) {
                steps -= 1;
            }
            dims[leading + at] = steps.max(0);
        }
        dims
    }
}

impl Eager {
    fn pooled(&self, x: &Tensor, dims: &[i64], dtype: DType) -> Tensor {
        if lies_channels_last(x) && dims.len() == 4 {
            self.channels_last(dims, dtype)
        } else {
            self.empty(dims, dtype)
        }
    }

    /// `aten::max_pool2d` and `max_pool3d`: values and the places that they come from.
    pub(crate) fn max_pool(&self, rank: usize, x: &Tensor, window: &Window) -> Tensor {
        let (name, inner, node, backward) = if rank == 3 {
            (
                "aten::max_pool3d",
                "aten::max_pool3d_with_indices",
                "MaxPool3DWithIndicesBackward0",
                "aten::max_pool3d_with_indices_backward",
            )
        } else {
            (
                "aten::max_pool2d",
                "aten::max_pool2d_with_indices",
                "MaxPool2DWithIndicesBackward0",
                "aten::max_pool2d_with_indices_backward",
            )
        };
        let w = window;
        let arguments = || args![x, w.kernel, w.stride, w.padding, w.dilation, w.ceil];
        self.call(name, arguments(), || {
            let dims = w.result(x.dims());
            let (result, indices) = self.primitive(inner, arguments(), || {
                (self.pooled(x, &dims, x.dtype()), self.pooled(x, &dims, DType::I64))
            });
            let save = |_: &[bool]| vec![Some(x.clone()), Some(indices.clone())];
            let w = w.clone();
            self.record(node, &recorded(&[x], &[&result]), save, move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let (x, indices) = (saved.tensor(0), saved.tensor(1));
                    let arguments =
                        args![g, x, w.kernel, w.stride, w.padding, w.dilation, w.ceil, indices];
                    eager.call(backward, arguments, || {
                        let gradient = eager.like(x);
                        eager.call("aten::zero_", args![gradient], || ());
                        gradient
                    })
                })]
            });
            result
        })
    }

    /// `aten::max_pool1d`, with gradients: as a picture of one row.
    pub(crate) fn max_pool1d(&self, x: &Tensor, w: &Window) -> Tensor {
        self.call(
            "aten::max_pool1d",
            args![x, w.kernel, w.stride, w.padding, w.dilation, w.ceil],
            || {
                self.call("aten::max_pool1d_with_indices", args![x, w.kernel], || {
                    let row = self.unsqueeze(x, -2);
                    let wide = |values: &[i64], first: i64| {
                        vec![first, values.first().copied().unwrap_or(first)]
                    };
                    let window = Window {
                        kernel: wide(&w.kernel, 1),
                        stride: wide(&w.stride, 1),
                        padding: wide(&w.padding, 0),
                        dilation: wide(&w.dilation, 1),
                        ceil: w.ceil,
                    };
                    let pooled = self.max_pool(2, &row, &window);
                    self.squeeze(&pooled, Some(-2))
                })
            },
        )
    }

    /// `aten::avg_pool1d` to `3d`.
    pub(crate) fn avg_pool(&self, rank: usize, x: &Tensor, window: &Window) -> Tensor {
        if rank == 1 {
            return self.call("aten::avg_pool1d", args![x], || {
                let row = self.unsqueeze(x, -2);
                let wide = |values: &[i64], first: i64| {
                    vec![first, values.first().copied().unwrap_or(first)]
                };
                let window = Window {
                    kernel: wide(&window.kernel, 1),
                    stride: wide(&window.stride, 1),
                    padding: wide(&window.padding, 0),
                    dilation: vec![1, 1],
                    ceil: window.ceil,
                };
                let pooled = self.avg_pool(2, &row, &window);
                self.squeeze(&pooled, Some(-2))
            });
        }
        let (name, node, backward) = if rank == 3 {
            ("aten::avg_pool3d", "AvgPool3DBackward0", "aten::avg_pool3d_backward")
        } else {
            ("aten::avg_pool2d", "AvgPool2DBackward0", "aten::avg_pool2d_backward")
        };
        let w = window;
        let dims = w.result(x.dims());
        let arguments = args![x, w.kernel, w.stride, w.padding, w.ceil, true, Absent];
        let result = self.primitive(name, arguments, || self.pooled(x, &dims, x.dtype()));
        let save = |_: &[bool]| vec![Some(x.clone())];
        let w = w.clone();
        self.record(node, &recorded(&[x], &[&result]), save, move |eager, saved, gradients| {
            vec![gradients[0].as_ref().map(|g| {
                let x = saved.tensor(0);
                let arguments = args![g, x, w.kernel, w.stride, w.padding, w.ceil, true, Absent];
                eager.call(backward, arguments, || eager.like(x))
            })]
        });
        result
    }

    /// `aten::adaptive_avg_pool1d` to `3d` (aten/src/ATen/native/AdaptiveAveragePooling.cpp): a mean where the
    /// result is one point.
    pub(crate) fn adaptive_avg_pool(&self, rank: usize, x: &Tensor, to: &[i64]) -> Tensor {
        match rank {
            1 => self.call("aten::adaptive_avg_pool1d", args![x, to], || {
                let row = self.unsqueeze(x, -2);
                let pooled =
                    self.adaptive_avg_pool(2, &row, &[1, to.first().copied().unwrap_or(1)]);
                self.squeeze(&pooled, Some(-2))
            }),
            _ => {
                let (name, inner, node, backward) = if rank == 3 {
                    (
                        "aten::adaptive_avg_pool3d",
                        "aten::_adaptive_avg_pool3d",
                        "AdaptiveAvgPool3DBackward0",
                        "aten::_adaptive_avg_pool3d_backward",
                    )
                } else {
                    (
                        "aten::adaptive_avg_pool2d",
                        "aten::_adaptive_avg_pool2d",
                        "AdaptiveAvgPool2DBackward0",
                        "aten::_adaptive_avg_pool2d_backward",
                    )
                };
                self.call(name, args![x, to], || {
                    if to.iter().all(|&d| d == 1) {
                        let axes = (1..=rank as i64).map(|d| -d).collect();
                        return self.mean(x, &Axes::Some(axes), true, None);
                    }
                    let mut dims = x.dims().to_vec();
                    let leading = dims.len().saturating_sub(to.len());
                    dims.splice(leading.., to.iter().copied());
                    let result =
                        self.primitive(inner, args![x, to], || self.pooled(x, &dims, x.dtype()));
                    let save = |_: &[bool]| vec![Some(x.clone())];
                    self.record(
                        node,
                        &recorded(&[x], &[&result]),
                        save,
                        move |eager, saved, gradients| {
                            vec![gradients[0].as_ref().map(|g| {
                                let x = saved.tensor(0);
                                eager.call(backward, args![g, x], || eager.like(x))
                            })]
                        },
                    );
                    result
                })
            }
        }
    }

    /// `aten::upsample_nearest2d` and the like, to a size.
    pub(crate) fn upsample(
        &self,
        (name, node, backward): (&'static str, &'static str, &'static str),
        x: &Tensor,
        size: &[i64],
    ) -> Tensor {
        let mut dims = x.dims().to_vec();
        let leading = dims.len().saturating_sub(size.len());
        dims.splice(leading.., size.iter().copied());
        let result = self.primitive(name, args![x, size, false, Absent, Absent], || {
            self.pooled(x, &dims, x.dtype())
        });
        let (from, size) = (x.dims().to_vec(), size.to_vec());
        self.record(
            node,
            &recorded(&[x], &[&result]),
            |_| Vec::new(),
            move |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    eager.call(backward, args![g, size, from, false, Absent, Absent], || {
                        let gradient = eager.empty(&from, g.dtype());
                        eager.call("aten::zero_", args![gradient], || ());
                        gradient
                    })
                })]
            },
        );
        result
    }

    /// `aten::pixel_shuffle`: a permuted copy.
    pub(crate) fn pixel_shuffle(&self, x: &Tensor, factor: i64) -> Tensor {
        let r = factor.max(1);
        let (n, c, h, w) = (x.dim(0), x.dim(1), x.dim(2), x.dim(3));
        let result = self.primitive("aten::pixel_shuffle", args![x, factor], || {
            let (c, h, w) =
                (c / r.saturating_mul(r).max(1), h.saturating_mul(r), w.saturating_mul(r));
            self.empty(&[n, c, h, w], x.dtype())
        });
        let from = x.dims().to_vec();
        self.record(
            "PixelShuffleBackward0",
            &recorded(&[x], &[&result]),
            |_| Vec::new(),
            move |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    eager.call("aten::pixel_unshuffle", args![g, factor], || {
                        eager.empty(&from, g.dtype())
                    })
                })]
            },
        );
        result
    }
}
