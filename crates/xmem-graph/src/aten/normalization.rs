//! Normalization layers.

use super::{axis, recorded};
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::{Saved, Tensor, count};

/// Weights and statistics of a batch norm.
pub(crate) struct BatchNorm<'a> {
    pub(crate) weight: Option<&'a Tensor>,
    pub(crate) bias: Option<&'a Tensor>,
    pub(crate) mean: Option<&'a Tensor>,
    pub(crate) variance: Option<&'a Tensor>,
    pub(crate) training: bool,
    pub(crate) momentum: f64,
    pub(crate) eps: f64,
}

/// Whether a layer has a weight and a bias, which follow its input among the arguments.
#[derive(Clone, Copy)]
struct Affine {
    weight: bool,
    bias: bool,
}

impl Affine {
    fn of(weight: Option<&Tensor>, bias: Option<&Tensor>) -> Self {
        Self { weight: weight.is_some(), bias: bias.is_some() }
    }

    /// `output_mask`: the gradients of input, weight and bias that are needed.
    fn mask(self, saved: &Saved<'_>) -> [bool; 3] {
        let of_bias = 1 + usize::from(self.weight);
        [saved.needs(0), self.weight && saved.needs(1), self.bias && saved.needs(of_bias)]
    }

    /// Gradients in the order of the arguments: that of the input, and what `make` makes for the others that are
    /// needed.
    fn gradients(
        self,
        mask: [bool; 3],
        input: Option<Tensor>,
        make: impl Fn() -> Tensor,
    ) -> Vec<Option<Tensor>> {
        let mut gradients = vec![input];
        gradients.extend(self.weight.then(|| mask[1].then(&make)));
        gradients.extend(self.bias.then(|| mask[2].then(&make)));
        gradients
    }
}

impl Eager {
    /// `aten::batch_norm` (aten/src/ATen/native/Normalization.cpp, `_batch_norm_impl_index`).
    pub(crate) fn batch_norm(&self, x: &Tensor, norm: &BatchNorm<'_>) -> Tensor {
        let BatchNorm { weight, bias, mean, variance, training, momentum, eps } = *norm;
        let arguments = || args![x, weight, bias, mean, variance, training, momentum, eps];
        let channels = x.dim(1);
        let mut with_cudnn = arguments();
        crate::eager::arguments::Argument::write(&true, &mut with_cudnn);
        self.call("aten::batch_norm", with_cudnn.clone(), || {
            self.call("aten::_batch_norm_impl_index", with_cudnn, || {
                let (result, saved_mean, saved_deviation) =
                    self.primitive("aten::native_batch_norm", arguments(), || {
                        let result = self.call("aten::empty_like", args![x], || self.like(x));
                        let statistics = || {
                            if training {
                                self.empty_called(&[channels], widened(x.dtype()))
                            } else {
                                self.empty_called(&[0], x.dtype())
                            }
                        };
                        (result, statistics(), statistics())
                    });
                let arguments: Vec<&Tensor> =
                    [Some(x), weight, bias].into_iter().flatten().collect();
                let affine = Affine::of(weight, bias);
                let save = |_: &[bool]| {
                    vec![
                        Some(x.clone()),
                        weight.cloned(),
                        Some(saved_mean.clone()),
                        Some(saved_deviation.clone()),
                        mean.cloned(),
                        variance.cloned(),
                    ]
                };
                let results = [&result];
                self.record(
                    "NativeBatchNormBackward0",
                    &recorded(&arguments, &results),
                    save,
                    move |eager, saved, gradients| {
                        let Some(g) = &gradients[0] else { return Vec::new() };
                        let x = saved.tensor(0);
                        let mask = affine.mask(saved);
                        let weight = saved.maybe(1);
                        let arguments = args![
                            g,
                            x,
                            weight,
                            saved.maybe(4),
                            saved.maybe(5),
                            saved.maybe(2),
                            saved.maybe(3),
                            training,
                            eps,
                            mask
                        ];
                        let dtype = weight.map_or(x.dtype(), Tensor::dtype);
                        eager.call("aten::native_batch_norm_backward", arguments, || {
                            let of_input = mask[0].then(|| {
                                eager.call("aten::empty_like", args![x], || eager.like(x))
                            });
                            affine.gradients(mask, of_input, || {
                                eager.empty_called(&[channels], dtype)
                            })
                        })
                    },
                );
                result
            })
        })
    }

    /// `aten::layer_norm` (aten/src/ATen/native/layer_norm.cpp).
    pub(crate) fn layer_norm(
        &self,
        x: &Tensor,
        shape: &[i64],
        (weight, bias): (Option<&Tensor>, Option<&Tensor>),
        eps: f64,
    ) -> Tensor {
        self.call("aten::layer_norm", args![x, shape, weight, bias, eps, true], || {
            let x = &self.contiguous(x);
            let rows = count(&x.dims()[..x.rank().saturating_sub(shape.len())]);
            let mut statistics: Vec<i64> = x.dims().to_vec();
            let leading = x.rank().saturating_sub(shape.len());
            statistics[leading..].fill(1);
            let arguments = args![x, shape, weight, bias, eps];
            let (result, mean, deviation) =
                self.primitive("aten::native_layer_norm", arguments, || {
                    let dtype = match (x.dtype(), weight.map(Tensor::dtype)) {
                        (DType::BF16 | DType::F16, Some(DType::F32)) => DType::F32,
                        (own, _) => own,
                    };
                    let result = self.empty_called(x.dims(), x.dtype());
                    let view = |t: Tensor| {
                        t.view(
                            statistics.clone(),
                            crate::eager::tensor::contiguous_strides(&statistics),
                        )
                    };
                    (
                        result,
                        view(self.empty_called(&[rows], dtype)),
                        view(self.empty_called(&[rows], dtype)),
                    )
                });
            let arguments: Vec<&Tensor> = [Some(x), weight, bias].into_iter().flatten().collect();
            let affine = Affine::of(weight, bias);
            let save = |_: &[bool]| {
                vec![
                    Some(x.clone()),
                    weight.cloned(),
                    bias.cloned(),
                    Some(mean.clone()),
                    Some(deviation.clone()),
                ]
            };
            let shape = shape.to_vec();
            self.record(
                "NativeLayerNormBackward0",
                &recorded(&arguments, &[&result]),
                save,
                move |eager, saved, gradients| {
                    let Some(g) = &gradients[0] else { return Vec::new() };
                    let x = saved.tensor(0);
                    let mask = affine.mask(saved);
                    let arguments = args![
                        g,
                        x,
                        shape,
                        saved.tensor(3),
                        saved.tensor(4),
                        saved.maybe(1),
                        saved.maybe(2),
                        mask
                    ];
                    let dtype = saved.maybe(1).map_or(x.dtype(), Tensor::dtype);
                    eager.call("aten::native_layer_norm_backward", arguments, || {
                        let input = mask[0].then(|| eager.empty_called(x.dims(), x.dtype()));
                        affine.gradients(mask, input, || eager.empty_called(&shape, dtype))
                    })
                },
            );
            result
        })
    }

    /// `aten::group_norm` (aten/src/ATen/native/group_norm.cpp).
    pub(crate) fn group_norm(
        &self,
        x: &Tensor,
        groups: i64,
        (weight, bias): (Option<&Tensor>, Option<&Tensor>),
        eps: f64,
    ) -> Tensor {
        self.call("aten::group_norm", args![x, groups, weight, bias, eps, true], || {
            let x = &self.contiguous(x);
            let (n, c) = (x.dim(0), x.dim(1));
            let spatial = count(x.dims().get(2..).unwrap_or_default());
            let arguments = args![x, weight, bias, n, c, spatial, groups, eps];
            let (result, mean, deviation) =
                self.primitive("aten::native_group_norm", arguments, || {
                    let dtype = widened(x.dtype());
                    let result = self.empty_called(x.dims(), x.dtype());
                    (
                        result,
                        self.empty_called(&[n, groups], dtype),
                        self.empty_called(&[n, groups], dtype),
                    )
                });
            let arguments: Vec<&Tensor> = [Some(x), weight, bias].into_iter().flatten().collect();
            let affine = Affine::of(weight, bias);
            let save = |_: &[bool]| {
                vec![Some(x.clone()), weight.cloned(), Some(mean.clone()), Some(deviation.clone())]
            };
            self.record(
                "NativeGroupNormBackward0",
                &recorded(&arguments, &[&result]),
                save,
                move |eager, saved, gradients| {
                    let Some(g) = &gradients[0] else { return Vec::new() };
                    let x = saved.tensor(0);
                    let mask = affine.mask(saved);
                    let arguments = args![
                        g,
                        x,
                        saved.tensor(2),
                        saved.tensor(3),
                        saved.maybe(1),
                        n,
                        c,
                        spatial,
                        groups,
                        mask
                    ];
                    let dtype = saved.maybe(1).map_or(x.dtype(), Tensor::dtype);
                    eager.call("aten::native_group_norm_backward", arguments, || {
                        let input = mask[0].then(|| eager.empty_called(x.dims(), x.dtype()));
                        affine.gradients(mask, input, || eager.empty_called(&[c], dtype))
                    })
                },
            );
            result
        })
    }

    /// `aten::rms_norm`: on a CPU made of other operators (layer_norm.cpp, `rms_norm_composite`).
    pub(crate) fn rms_norm(
        &self,
        x: &Tensor,
        shape: &[i64],
        weight: Option<&Tensor>,
        eps: Option<f64>,
    ) -> Tensor {
        use super::arithmetic::Binary;
        use crate::eager::arguments::Number;
        self.call("aten::rms_norm", args![x, shape, weight, eps], || {
            self.call("aten::_fused_rms_norm", args![x, shape, weight, eps], || {
                let wide = self.to_dtype(x, widened(x.dtype()));
                let square = self.pow(&wide, Number::Int(2));
                let axes =
                    (x.rank().saturating_sub(shape.len())..x.rank()).map(|at| at as i64).collect();
                let mean = self.mean(&square, &super::Axes::Some(axes), true, None);
                drop(square);
                let shifted = self.binary_in_place(
                    Binary::Add,
                    &mean,
                    &super::Operand::Number(Number::Float(eps.unwrap_or(1e-6))),
                );
                let scale = self.rsqrt(&shifted);
                drop((mean, shifted));
                let normal = self.binary(Binary::Mul, &(&wide).into(), &(&scale).into());
                let result = match weight {
                    Some(weight) => self.binary(Binary::Mul, &(&normal).into(), &weight.into()),
                    None => normal,
                };
                self.to_dtype(&result, x.dtype())
            })
        })
    }

    /// `aten::_weight_norm` over one dimension.
    pub(crate) fn weight_norm(&self, v: &Tensor, g: &Tensor, dim: i64) -> Tensor {
        self.call("aten::_weight_norm", args![v, g, dim], || {
            let at = axis(dim, v.rank());
            let mut sizes = vec![1; v.rank()];
            if let Some(size) = sizes.get_mut(at) {
                *size = v.dim(dim);
            }
            let (result, norms) =
                self.primitive("aten::_weight_norm_interface", args![v, g, dim], || {
                    let result = self.call("aten::empty_like", args![v], || self.like(v));
                    (result, self.empty(&sizes, widened(g.dtype())))
                });
            let save = |_: &[bool]| vec![Some(v.clone()), Some(g.clone()), Some(norms.clone())];
            self.record(
                "WeightNormInterfaceBackward0",
                &recorded(&[v, g], &[&result]),
                save,
                move |eager, saved, gradients| {
                    let Some(gradient) = &gradients[0] else { return Vec::new() };
                    let (v, g) = (saved.tensor(0), saved.tensor(1));
                    let arguments = args![gradient, v, g, saved.tensor(2), dim];
                    eager.call("aten::_weight_norm_interface_backward", arguments, || {
                        vec![Some(eager.like(v)), Some(eager.like(g))]
                    })
                },
            );
            result
        })
    }
}

/// The type of statistics: 32 bits for narrower ones.
fn widened(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}
