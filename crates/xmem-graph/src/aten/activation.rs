//! Activations and dropout.

use super::recorded;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::{Tensor, preserved_strides};

/// An activation with a backward operator of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activation {
    /// `aten::` name.
    pub(crate) name: &'static str,
    pub(crate) node: &'static str,
    pub(crate) backward: &'static str,
    pub(crate) keeps: Keeps,
}

/// What an activation keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    Input,
    Result,
}

/// The activations, by name. Sources: derivatives.yaml.
const ACTIVATIONS: &[Activation] = &[
    activation("aten::relu", "ReluBackward0", "aten::threshold_backward", Keeps::Result),
    activation("aten::sigmoid", "SigmoidBackward0", "aten::sigmoid_backward", Keeps::Result),
    activation("aten::tanh", "TanhBackward0", "aten::tanh_backward", Keeps::Result),
    activation("aten::gelu", "GeluBackward0", "aten::gelu_backward", Keeps::Input),
    activation("aten::silu", "SiluBackward0", "aten::silu_backward", Keeps::Input),
    activation("aten::mish", "MishBackward0", "aten::mish_backward", Keeps::Input),
    activation("aten::elu", "EluBackward0", "aten::elu_backward", Keeps::Input),
    activation("aten::leaky_relu", "LeakyReluBackward0", "aten::leaky_relu_backward", Keeps::Input),
    activation("aten::hardtanh", "HardtanhBackward0", "aten::hardtanh_backward", Keeps::Input),
    activation("aten::relu6", "HardtanhBackward0", "aten::hardtanh_backward", Keeps::Input),
    activation("aten::hardswish", "HardswishBackward0", "aten::hardswish_backward", Keeps::Input),
    activation(
        "aten::hardsigmoid",
        "HardsigmoidBackward0",
        "aten::hardsigmoid_backward",
        Keeps::Result,
    ),
    activation("aten::softplus", "SoftplusBackward0", "aten::softplus_backward", Keeps::Input),
    activation(
        "aten::log_sigmoid",
        "LogSigmoidBackward0",
        "aten::log_sigmoid_backward",
        Keeps::Input,
    ),
];

const fn activation(
    name: &'static str,
    node: &'static str,
    backward: &'static str,
    keeps: Keeps,
) -> Activation {
    Activation { name, node, backward, keeps }
}

impl Activation {
    /// The activation of an operator without `aten::`.
    pub(crate) fn of(operator: &str) -> Option<&'static Self> {
        ACTIVATIONS.iter().find(|a| a.name.strip_prefix("aten::") == Some(operator))
    }
}

impl Eager {
    /// An activation.
    pub(crate) fn activation(&self, which: &'static Activation, x: &Tensor) -> Tensor {
        let result = self.primitive(which.name, args![x], || self.elementwise(&[x], x.dtype()));
        let kept = match which.keeps {
            Keeps::Input => x.clone(),
            Keeps::Result => result.clone(),
        };
        self.record_activation(which, x, kept, &result);
        result
    }

    /// An activation in the memory of its input: one that keeps its input copies it first
    /// (tools/autograd/gen_variable_type.py, `SAVE_ORIGINAL_SELF`), but for those whose gradient can be told from
    /// the result.
    pub(crate) fn activation_in_place(
        &self,
        (which, name): (&'static Activation, &'static str),
        x: &Tensor,
    ) -> Tensor {
        let from_result = matches!(which.name, "aten::leaky_relu" | "aten::elu");
        let copies = which.keeps == Keeps::Input && !from_result && self.records(&[x]);
        let original = self.primitive(name, args![x], || {
            copies.then(|| self.call("aten::clone", args![x], || self.like(x)))
        });
        let kept = original.unwrap_or_else(|| x.clone());
        self.record_activation(which, x, kept, x);
        x.clone()
    }

    fn record_activation(
        &self,
        which: &'static Activation,
        x: &Tensor,
        kept: Tensor,
        result: &Tensor,
    ) {
        let save = |_: &[bool]| vec![Some(kept)];
        let backward = which.backward;
        self.record(
            which.node,
            &recorded(&[x], &[result]),
            save,
            move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let kept = saved.tensor(0);
                    eager
                        .call(backward, args![g, kept], || eager.elementwise(&[g, kept], g.dtype()))
                })]
            },
        );
    }

    /// `aten::dropout` (aten/src/ATen/native/Dropout.cpp, `_dropout_impl`): noise, then a product.
    pub(crate) fn dropout(&self, x: &Tensor, p: f64, train: bool) -> Tensor {
        self.call("aten::dropout", args![x, p, train], || {
            if p == 0.0 || !train || x.elements() == 0 {
                return x.clone();
            }
            let noise = self.noise(x, p);
            self.binary(super::arithmetic::Binary::Mul, &x.into(), &(&noise).into())
        })
    }

    /// `aten::dropout_`.
    pub(crate) fn dropout_in_place(&self, x: &Tensor, p: f64, train: bool) -> Tensor {
        self.call("aten::dropout_", args![x, p, train], || {
            if p == 0.0 || !train {
                return x.clone();
            }
            let noise = self.noise(x, p);
            self.binary_in_place(super::arithmetic::Binary::Mul, x, &(&noise).into())
        })
    }

    /// `aten::feature_dropout`: one number for each feature.
    pub(crate) fn feature_dropout(&self, x: &Tensor, p: f64, train: bool) -> Tensor {
        self.call("aten::feature_dropout", args![x, p, train], || {
            if p == 0.0 || !train {
                return x.clone();
            }
            let dims: Vec<i64> =
                x.dims().iter().enumerate().map(|(at, &d)| if at < 2 { d } else { 1 }).collect();
            let noise = self.empty_called(&dims, x.dtype());
            self.scale_noise(&noise, p);
            self.binary(super::arithmetic::Binary::Mul, &x.into(), &(&noise).into())
        })
    }

    fn noise(&self, x: &Tensor, p: f64) -> Tensor {
        let noise = self.call("aten::empty_like", args![x], || {
            self.empty_strided(x.dims().to_vec(), preserved_strides(x), x.dtype())
        });
        self.scale_noise(&noise, p);
        noise
    }

    /// Zeros with probability `p`, and what keeps the mean elsewhere.
    fn scale_noise(&self, noise: &Tensor, p: f64) {
        self.call("aten::bernoulli_", args![noise, 1.0 - p], || ());
        self.call("aten::div_", args![noise, 1.0 - p], || ());
    }

    /// `aten::softmax` and `log_softmax`.
    pub(crate) fn softmax(&self, log: bool, x: &Tensor, dim: i64, dtype: Option<DType>) -> Tensor {
        let (name, inner, node, backward) = if log {
            (
                "aten::log_softmax",
                "aten::_log_softmax",
                "LogSoftmaxBackward0",
                "aten::_log_softmax_backward_data",
            )
        } else {
            ("aten::softmax", "aten::_softmax", "SoftmaxBackward0", "aten::_softmax_backward_data")
        };
        let arguments = match dtype {
            Some(dtype) => args![x, dim, dtype.number()],
            None => args![x, dim, crate::eager::arguments::Absent],
        };
        self.call(name, arguments, || {
            let x = &match dtype {
                Some(dtype) => self.to_dtype(x, dtype),
                None => x.clone(),
            };
            let result =
                self.primitive(inner, args![x, dim, false], || self.empty(x.dims(), x.dtype()));
            let save = |_: &[bool]| vec![Some(result.clone())];
            let number = x.dtype().number();
            self.record(node, &recorded(&[x], &[&result]), save, move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let arguments = args![g, saved.tensor(0), dim, number];
                    eager.call(backward, arguments, || eager.empty(g.dims(), g.dtype()))
                })]
            });
            result
        })
    }

    /// `aten::glu`.
    pub(crate) fn glu(&self, x: &Tensor, dim: i64) -> Tensor {
        let at = super::axis(dim, x.rank());
        let mut dims = x.dims().to_vec();
        if let Some(size) = dims.get_mut(at) {
            *size /= 2;
        }
        let result = self.primitive("aten::glu", args![x, dim], || self.empty(&dims, x.dtype()));
        let save = |_: &[bool]| vec![Some(x.clone())];
        self.record(
            "GluBackward0",
            &recorded(&[x], &[&result]),
            save,
            move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let x = saved.tensor(0);
                    eager.call("aten::glu_backward", args![g, x, dim], || {
                        eager.empty(x.dims(), x.dtype())
                    })
                })]
            },
        );
        result
    }
}
