//! Losses (aten/src/ATen/native/Loss.cpp, LossNLL.cpp).

use super::arithmetic::Binary;
use super::{Axes, Operand, recorded};
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, Number, args};
use crate::eager::tensor::Tensor;

/// `at::Reduction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    None,
    Mean,
    Sum,
}

impl Reduction {
    pub(crate) const fn of(number: i64) -> Self {
        match number {
            0 => Self::None,
            2 => Self::Sum,
            _ => Self::Mean,
        }
    }

    const fn number(self) -> i64 {
        match self {
            Self::None => 0,
            Self::Mean => 1,
            Self::Sum => 2,
        }
    }
}

impl Eager {
    /// `aten::cross_entropy_loss`.
    pub(crate) fn cross_entropy(
        &self,
        (x, target): (&Tensor, &Tensor),
        weight: Option<&Tensor>,
        reduction: Reduction,
        (ignore, smoothing): (i64, f64),
    ) -> Tensor {
        let arguments = args![x, target, weight, reduction.number(), ignore, smoothing];
        self.call("aten::cross_entropy_loss", arguments, || {
            let classes = if x.rank() == 1 { 0 } else { 1 };
            let log = self.softmax(true, x, classes, Some(x.dtype()));
            if target.dtype().is_floating_point() {
                return self.soft_targets(&log, target, classes, reduction);
            }
            if smoothing == 0.0 {
                return self.nll_loss(&log, target, weight, reduction, ignore);
            }
            let nll = self.nll_loss(&log, target, weight, reduction, ignore);
            let sums = self.sum(&log, &Axes::Some(vec![classes]), false, None);
            let smooth = self.neg(&sums);
            drop(sums);
            let ignored = self.plain(
                "aten::eq",
                &[&target.into(), &Operand::Number(Number::Int(ignore))],
                Some(DType::Bool),
            );
            let smooth =
                self.masked_fill(&smooth, &ignored, &Operand::Number(Number::Int(0)), true);
            let smooth = match reduction {
                Reduction::Mean => {
                    let sum = self.sum(&smooth, &Axes::All, false, None);
                    self.binary(
                        Binary::Div,
                        &(&sum).into(),
                        &Operand::Number(Number::Int(target.elements())),
                    )
                }
                Reduction::Sum => self.sum(&smooth, &Axes::All, false, None),
                Reduction::None => smooth,
            };
            let scale = Operand::Number(Number::Float(1.0 - smoothing));
            let a = self.binary(Binary::Mul, &(&nll).into(), &scale);
            let b = self.binary(
                Binary::Mul,
                &(&smooth).into(),
                &Operand::Number(Number::Float(smoothing)),
            );
            self.binary(Binary::Add, &(&a).into(), &(&b).into())
        })
    }

    /// Targets that are probabilities (`cross_entropy_loss_prob_target`).
    fn soft_targets(
        &self,
        log: &Tensor,
        target: &Tensor,
        classes: i64,
        reduction: Reduction,
    ) -> Tensor {
        let product = self.binary(Binary::Mul, &log.into(), &target.into());
        match reduction {
            Reduction::Mean => {
                let sum = self.sum(&product, &Axes::All, false, None);
                let negative = self.neg(&sum);
                let count = log.elements() / log.dim(classes).max(1);
                self.binary(Binary::Div, &(&negative).into(), &Operand::Number(Number::Int(count)))
            }
            Reduction::Sum => {
                let sum = self.sum(&product, &Axes::All, false, None);
                self.neg(&sum)
            }
            Reduction::None => {
                let sum = self.sum(&product, &Axes::Some(vec![classes]), false, None);
                self.neg(&sum)
            }
        }
    }

    /// `aten::nll_loss_nd`.
    pub(crate) fn nll_loss(
        &self,
        x: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
        ignore: i64,
    ) -> Tensor {
        let arguments = || args![x, target, weight, reduction.number(), ignore];
        let plane = x.rank() > 2;
        let (outer, inner, node, backward) = if plane {
            (
                "aten::nll_loss2d",
                "aten::nll_loss2d_forward",
                "NllLoss2DBackward0",
                "aten::nll_loss2d_backward",
            )
        } else {
            (
                "aten::nll_loss",
                "aten::nll_loss_forward",
                "NllLossBackward0",
                "aten::nll_loss_backward",
            )
        };
        self.call("aten::nll_loss_nd", arguments(), || {
            let (x, target) = &if x.rank() > 2 && x.rank() != 4 {
                let (n, c) = (x.dim(0), x.dim(1));
                (self.reshape(x, &[n, c, 1, -1]), self.reshape(target, &[n, 1, -1]))
            } else {
                (x.clone(), target.clone())
            };
            self.call(outer, arguments(), || {
                let dims =
                    if reduction == Reduction::None { target.dims().to_vec() } else { Vec::new() };
                let (result, total) = self.primitive(inner, arguments(), || {
                    (self.empty(&dims, x.dtype()), self.empty(&[], x.dtype()))
                });
                let save = |_: &[bool]| {
                    vec![
                        Some(x.clone()),
                        Some(target.clone()),
                        weight.cloned(),
                        Some(total.clone()),
                    ]
                };
                self.record(
                    node,
                    &recorded(&[x], &[&result]),
                    save,
                    move |eager, saved, gradients| {
                        vec![gradients[0].as_ref().map(|g| {
                            let x = saved.tensor(0);
                            let arguments = args![
                                g,
                                x,
                                saved.tensor(1),
                                saved.maybe(2),
                                reduction.number(),
                                ignore,
                                saved.tensor(3)
                            ];
                            eager.call(backward, arguments, || {
                                let gradient = eager.empty(x.dims(), x.dtype());
                                eager.call("aten::zero_", args![gradient], || ());
                                gradient
                            })
                        })]
                    },
                );
                result
            })
        })
    }

    /// `aten::mse_loss`, `smooth_l1_loss`, `huber_loss`: elementwise into a buffer, then reduced.
    pub(crate) fn pointwise_loss(
        &self,
        (name, node, backward): (&'static str, &'static str, &'static str),
        (x, target): (&Tensor, &Tensor),
        reduction: Reduction,
    ) -> Tensor {
        let dims = super::broadcast(x.dims(), target.dims());
        let dtype = x.dtype().promoted(target.dtype());
        let arguments = || args![x, target, reduction.number()];
        let result = self.primitive(name, arguments(), || {
            if reduction == Reduction::None {
                return self.elementwise(&[x, target], dtype);
            }
            let result = self.empty(&[], dtype);
            let buffer = self.empty_called(&dims, dtype);
            self.call("aten::mean", args![buffer, Absent, false], || ());
            drop(buffer);
            result
        });
        let save = |_: &[bool]| vec![Some(x.clone()), Some(target.clone())];
        self.record(
            node,
            &recorded(&[x, target], &[&result]),
            save,
            move |eager, saved, gradients| {
                let Some(g) = &gradients[0] else { return Vec::new() };
                let (x, target) = (saved.tensor(0), saved.tensor(1));
                let gradient = |at: usize| {
                    saved.needs(at).then(|| {
                        eager.call(backward, args![g, x, target, reduction.number()], || {
                            eager.call("aten::zeros_like", args![x], || {
                                eager.elementwise(&[x, target], x.dtype())
                            })
                        })
                    })
                };
                vec![gradient(0), gradient(1)]
            },
        );
        result
    }

    /// `aten::binary_cross_entropy_with_logits`.
    pub(crate) fn bce_with_logits(
        &self,
        (x, target): (&Tensor, &Tensor),
        (weight, positive): (Option<&Tensor>, Option<&Tensor>),
        reduction: Reduction,
    ) -> Tensor {
        let arguments = args![x, target, weight, positive, reduction.number()];
        let name = "aten::binary_cross_entropy_with_logits";
        let result = self.primitive(name, arguments, || {
            let log = self.call("aten::log_sigmoid", args![x], || {
                self.call("aten::log_sigmoid_forward", args![x], || {
                    let result = self.call("aten::empty_like", args![x], || self.like(x));
                    let buffer = self.call("aten::empty_like", args![x], || self.like(x));
                    drop(buffer);
                    result
                })
            });
            let loss = self.call("aten::empty_like", args![x], || self.like(x));
            self.call("aten::sub_", args![loss, log, 1_i64], || ());
            if reduction == Reduction::None {
                return loss;
            }
            let mean = self.call("aten::mean", args![loss, Absent], || self.empty(&[], x.dtype()));
            drop((loss, log));
            mean
        });
        let save = |_: &[bool]| {
            vec![Some(x.clone()), Some(target.clone()), weight.cloned(), positive.cloned()]
        };
        let node = "BinaryCrossEntropyWithLogitsBackward0";
        self.record(node, &recorded(&[x], &[&result]), save, |eager, saved, gradients| {
            vec![gradients[0].as_ref().map(|g| {
                let x = saved.tensor(0);
                let gradient = eager.like_called("aten::sigmoid", x);
                eager.call("aten::sub_", args![gradient, saved.tensor(1), 1_i64], || ());
                eager.call("aten::mul_", args![gradient, g], || ());
                gradient
            })]
        });
        result
    }

    /// `aten::binary_cross_entropy`.
    pub(crate) fn bce(&self, (x, target): (&Tensor, &Tensor), reduction: Reduction) -> Tensor {
        let result = self.primitive(
            "aten::binary_cross_entropy",
            args![x, target, Absent, reduction.number()],
            || {
                let loss = self.call("aten::empty_like", args![x], || self.like(x));
                if reduction == Reduction::None {
                    return loss;
                }
                let mean =
                    self.call("aten::mean", args![loss, Absent], || self.empty(&[], x.dtype()));
                drop(loss);
                mean
            },
        );
        let save = |_: &[bool]| vec![Some(x.clone()), Some(target.clone())];
        self.record(
            "BinaryCrossEntropyBackward0",
            &recorded(&[x], &[&result]),
            save,
            |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let (x, target) = (saved.tensor(0), saved.tensor(1));
                    eager.call("aten::binary_cross_entropy_backward", args![g, x, target], || {
                        eager.like(x)
                    })
                })]
            },
        );
        result
    }

    /// `aten::l1_loss`: a difference, its absolute values, their mean.
    pub(crate) fn l1_loss(&self, x: &Tensor, target: &Tensor, reduction: Reduction) -> Tensor {
        self.call("aten::l1_loss", args![x, target, reduction.number()], || {
            let difference = self.binary(Binary::Sub, &x.into(), &target.into());
            let absolute = self.abs(&difference);
            drop(difference);
            match reduction {
                Reduction::None => absolute,
                Reduction::Mean => self.mean(&absolute, &Axes::All, false, None),
                Reduction::Sum => self.sum(&absolute, &Axes::All, false, None),
            }
        })
    }

    /// `aten::abs`.
    pub(crate) fn abs(&self, x: &Tensor) -> Tensor {
        let names = ("aten::abs", "AbsBackward0");
        self.factored(names, x, super::arithmetic::SavesFor::Input, &["aten::sgn", "aten::mul"])
    }

    /// `aten::kl_div` (Loss.cpp): with targets that are not logarithms, `xlogy` and a product.
    pub(crate) fn kl_div(
        &self,
        x: &Tensor,
        target: &Tensor,
        reduction: Reduction,
        log: bool,
    ) -> Tensor {
        self.call("aten::kl_div", args![x, target, reduction.number(), log], || {
            let first = if log {
                self.factored(
                    ("aten::exp", "ExpBackward0"),
                    target,
                    super::arithmetic::SavesFor::Result,
                    &["aten::mul"],
                )
            } else {
                self.plain("aten::xlogy", &[&target.into(), &target.into()], None)
            };
            let second = self.binary(Binary::Mul, &target.into(), &x.into());
            let loss = self.binary(Binary::Sub, &(&first).into(), &(&second).into());
            drop((first, second));
            match reduction {
                Reduction::None => loss,
                Reduction::Mean => self.mean(&loss, &Axes::All, false, None),
                Reduction::Sum => self.sum(&loss, &Axes::All, false, None),
            }
        })
    }
}
