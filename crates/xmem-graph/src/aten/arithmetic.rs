//! Elementwise operators of one or two tensors.

use super::recorded;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Args, Argument, Number, Wrapped, args};
use crate::eager::tensor::Tensor;

/// A tensor or a Python number.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Tensor(Tensor),
    Number(Number),
}

impl Operand {
    pub(crate) fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            Self::Number(_) => None,
        }
    }
}

impl Argument for Operand {
    fn write(&self, args: &mut Args) {
        match self {
            Self::Tensor(tensor) => tensor.write(args),
            Self::Number(number) => Wrapped(*number).write(args),
        }
    }
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Self {
        Self::Tensor(tensor.clone())
    }
}

/// An operator of two operands, by its derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Rsub,
    Mul,
    Div,
    Maximum,
    Minimum,
}

impl Binary {
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Add => ("aten::add", "aten::add_", "AddBackward0"),
            Self::Sub => ("aten::sub", "aten::sub_", "SubBackward0"),
            Self::Rsub => ("aten::rsub", "aten::rsub", "RsubBackward1"),
            Self::Mul => ("aten::mul", "aten::mul_", "MulBackward0"),
            Self::Div => ("aten::div", "aten::div_", "DivBackward0"),
            Self::Maximum => ("aten::maximum", "aten::maximum", "MaximumBackward0"),
            Self::Minimum => ("aten::minimum", "aten::minimum", "MinimumBackward0"),
        }
    }
}

/// The type of the result (aten/src/ATen/native/TypeProperties.cpp, `result_type`): tensors with dimensions
/// outweigh those without, these outweigh numbers, within a category.
fn result_type(operands: &[&Operand]) -> DType {
    let category = |t: DType| match t {
        DType::Bool => 0,
        t if t.is_floating_point() => 2,
        DType::C64 | DType::C128 => 3,
        _ => 1,
    };
    let fold = |wants: &dyn Fn(&Operand) -> Option<DType>| {
        operands.iter().filter_map(|o| wants(o)).reduce(DType::promoted)
    };
    let with_dims = fold(&|o| o.tensor().filter(|t| t.rank() > 0).map(Tensor::dtype));
    let scalars = fold(&|o| o.tensor().filter(|t| t.rank() == 0).map(Tensor::dtype));
    let numbers = fold(&|o| match o {
        Operand::Number(Number::Int(_)) => Some(DType::I64),
        Operand::Number(Number::Float(_)) => Some(DType::F32),
        Operand::Number(Number::Bool(_)) => Some(DType::Bool),
        Operand::Tensor(_) => None,
    });
    [with_dims, scalars, numbers]
        .into_iter()
        .flatten()
        .reduce(|a, b| if category(b) > category(a) { b } else { a })
        .unwrap_or(DType::F32)
}

impl Eager {
    /// `add`, `sub`, `mul`, `div`, `maximum`, `minimum`.
    pub(crate) fn binary(&self, which: Binary, a: &Operand, b: &Operand) -> Tensor {
        let (name, _, node) = which.names();
        let mut dtype = result_type(&[a, b]);
        if which == Binary::Div && !dtype.is_differentiable() {
            dtype = DType::F32;
        }
        let inputs: Vec<&Tensor> = [a.tensor(), b.tensor()].into_iter().flatten().collect();
        let result = self.primitive(name, args![a, b], || self.elementwise(&inputs, dtype));
        self.record_kept(which, node, (a, a, b), &result);
        result
    }

    /// The same in the memory of the first.
    pub(crate) fn binary_in_place(&self, which: Binary, a: &Tensor, b: &Operand) -> Tensor {
        let (_, name, node) = which.names();
        let first = Operand::from(a);
        let saves = which == Binary::Mul
            && self.records(&[a])
            && b.tensor().is_some_and(Tensor::requires_grad);
        let original = self.primitive(name, args![a, b], || saves.then(|| self.clone_like(a)));
        let kept = original.as_ref().map_or(first, Operand::from);
        if a.requires_grad() || b.tensor().is_some_and(Tensor::requires_grad) {
            let edge_of = Operand::from(a);
            self.record_kept(which, node, (&edge_of, &kept, b), a);
        }
        a.clone()
    }

    /// Notes the call; `kept` is what the gradient of the second operand finds of the first.
    fn record_kept(
        &self,
        which: Binary,
        node: &'static str,
        (a, kept, b): (&Operand, &Operand, &Operand),
        result: &Tensor,
    ) {
        let arguments: Vec<&Tensor> = [a.tensor(), b.tensor()].into_iter().flatten().collect();
        // The place of each operand among the arguments.
        let first = a.tensor().map(|_| 0);
        let second = b.tensor().map(|_| usize::from(first.is_some()));
        let tensor = |o: &Operand| o.tensor().cloned();
        let save = |needed: &[bool]| {
            let needs = |at: Option<usize>| at.is_some_and(|at| needed[at]);
            match which {
                Binary::Mul => {
                    vec![tensor(kept).filter(|_| needs(second)), tensor(b).filter(|_| needs(first))]
                }
                Binary::Div => vec![tensor(kept).filter(|_| needs(second)), tensor(b)],
                Binary::Maximum | Binary::Minimum => vec![tensor(kept), tensor(b)],
                Binary::Add | Binary::Sub | Binary::Rsub => Vec::new(),
            }
        };
        let size = arguments.len();
        self.record(
            node,
            &recorded(&arguments, &[result]),
            save,
            move |eager, saved, gradients| {
                let mut out = vec![None; size];
                let Some(g) = &gradients[0] else { return out };
                let needs = |at: Option<usize>| at.filter(|&at| saved.needs(at));
                if let Some(at) = needs(first) {
                    out[at] = Some(match which {
                        Binary::Add | Binary::Sub => g.clone(),
                        Binary::Rsub => eager.like_called("aten::neg", g),
                        Binary::Mul => eager.scaled("aten::mul", g, saved.maybe(1)),
                        Binary::Div => eager.scaled("aten::div", g, saved.maybe(1)),
                        Binary::Maximum | Binary::Minimum => eager.masked_part(g, saved),
                    });
                }
                if let Some(at) = needs(second) {
                    out[at] = Some(match which {
                        Binary::Add | Binary::Rsub => g.clone(),
                        Binary::Sub => eager.like_called("aten::neg", g),
                        Binary::Mul => eager.scaled("aten::mul", g, saved.maybe(0)),
                        Binary::Div => eager.divisor_gradient(g, saved.maybe(0), saved.tensor(1)),
                        Binary::Maximum | Binary::Minimum => eager.masked_part(g, saved),
                    });
                }
                out
            },
        );
    }

    /// An operator of one tensor that makes one like it.
    pub(super) fn like_called(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.call(name, args![x], || self.elementwise(&[x], x.dtype()))
    }

    /// A product or quotient within a backward function.
    fn scaled(&self, name: &'static str, g: &Tensor, by: Option<&Tensor>) -> Tensor {
        match by {
            Some(by) => self.call(name, args![g, by], || {
                let dtype = result_type(&[&Operand::from(g), &Operand::from(by)]);
                self.elementwise(&[g, by], dtype)
            }),
            None => self.like_called(name, g),
        }
    }

    /// FunctionsManual.cpp, `div_tensor_other_grad`: `-grad * ((self / other) / other)`.
    fn divisor_gradient(&self, g: &Tensor, dividend: Option<&Tensor>, divisor: &Tensor) -> Tensor {
        let negated = self.like_called("aten::neg", g);
        let quotient = self.scaled("aten::div", dividend.unwrap_or(divisor), Some(divisor));
        let quotient = self.scaled("aten::div", &quotient, Some(divisor));
        self.scaled("aten::mul", &negated, Some(&quotient))
    }

    /// derivatives.yaml, `maximum`: the gradient where the operand is the larger one, half where they are equal.
    fn masked_part(&self, g: &Tensor, saved: &crate::eager::tensor::Saved<'_>) -> Tensor {
        let tensors: Vec<&Tensor> =
            [saved.maybe(0), saved.maybe(1)].into_iter().flatten().collect();
        let equal = self.call("aten::eq", args![g], || self.elementwise(&tensors, DType::Bool));
        let half = self.like_called("aten::div", g);
        let other = self.call("aten::ge", args![g], || self.elementwise(&tensors, DType::Bool));
        let result = self.call("aten::masked_fill_", args![half, equal], || half.clone());
        drop((equal, other));
        result
    }

    /// Operators whose result has no gradient: comparisons, logic, rounding.
    pub(crate) fn plain(
        &self,
        name: &'static str,
        operands: &[&Operand],
        dtype: Option<DType>,
    ) -> Tensor {
        let inputs: Vec<&Tensor> = operands.iter().filter_map(|o| o.tensor()).collect();
        let dtype = dtype.unwrap_or_else(|| result_type(operands));
        let mut arguments = Args::default();
        for operand in operands {
            operand.write(&mut arguments);
        }
        self.primitive(name, arguments, || self.elementwise(&inputs, dtype))
    }

    /// `aten::neg`.
    pub(crate) fn neg(&self, x: &Tensor) -> Tensor {
        let result = self.primitive("aten::neg", args![x], || self.elementwise(&[x], x.dtype()));
        self.record(
            "NegBackward0",
            &recorded(&[x], &[&result]),
            |_| Vec::new(),
            |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| eager.like_called("aten::neg", g))]
            },
        );
        result
    }

    /// `aten::pow` with a number as exponent (FunctionsManual.cpp, `pow_backward`).
    pub(crate) fn pow(&self, x: &Tensor, exponent: Number) -> Tensor {
        let dtype = if x.dtype().is_differentiable() || matches!(exponent, Number::Int(_)) {
            x.dtype()
        } else {
            DType::F32
        };
        let result =
            self.primitive("aten::pow", args![x, exponent], || self.elementwise(&[x], dtype));
        let save = |_: &[bool]| vec![Some(x.clone())];
        self.record(
            "PowBackward0",
            &recorded(&[x], &[&result]),
            save,
            move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let base = saved.tensor(0);
                    let less = Number::Float(exponent.as_f64() - 1.0);
                    let power = eager.call("aten::pow", args![base, less], || {
                        eager.elementwise(&[base], base.dtype())
                    });
                    let factor = eager.like_called("aten::mul", &power);
                    eager.scaled("aten::mul", g, Some(&factor))
                })]
            },
        );
        result
    }

    /// `aten::rsqrt` (derivatives.yaml: `-0.5 * grad * result.pow(3)`).
    pub(crate) fn rsqrt(&self, x: &Tensor) -> Tensor {
        let result = self.primitive("aten::rsqrt", args![x], || self.elementwise(&[x], x.dtype()));
        let save = |_: &[bool]| vec![Some(result.clone())];
        self.record(
            "RsqrtBackward0",
            &recorded(&[x], &[&result]),
            save,
            |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let cube = eager.call("aten::pow", args![saved.tensor(0), 3_i64], || {
                        eager.like(saved.tensor(0))
                    });
                    let half = eager.like_called("aten::mul", g);
                    eager.scaled("aten::mul", &half, Some(&cube))
                })]
            },
        );
        result
    }

    /// Operators of one tensor whose gradient is one product or quotient with what was saved.
    pub(crate) fn factored(
        &self,
        (name, node): (&'static str, &'static str),
        x: &Tensor,
        saves: SavesFor,
        steps: &'static [&'static str],
    ) -> Tensor {
        let dtype = if x.dtype().is_differentiable() { x.dtype() } else { DType::F32 };
        let result = self.primitive(name, args![x], || self.elementwise(&[x], dtype));
        let save = |_: &[bool]| match saves {
            SavesFor::Input => vec![Some(x.clone())],
            SavesFor::Result => vec![Some(result.clone())],
            SavesFor::Nothing => Vec::new(),
        };
        self.record(node, &recorded(&[x], &[&result]), save, move |eager, saved, gradients| {
            vec![gradients[0].as_ref().map(|g| {
                // Each step but the last makes a factor out of what was saved; the last joins it to the gradient.
                let model = saved.maybe(0).unwrap_or(g);
                let Some((last, before)) = steps.split_last() else { return g.clone() };
                let factor = before.iter().fold(None::<Tensor>, |factor, step| {
                    Some(eager.like_called(step, factor.as_ref().unwrap_or(model)))
                });
                let factor = factor.or_else(|| saved.maybe(0).cloned());
                eager.scaled(last, g, factor.as_ref())
            })]
        });
        result
    }

    /// `aten::where`.
    pub(crate) fn where_(&self, condition: &Tensor, a: &Operand, b: &Operand) -> Tensor {
        let dtype = result_type(&[a, b]);
        let mut inputs: Vec<&Tensor> = [a.tensor(), b.tensor()].into_iter().flatten().collect();
        inputs.push(condition);
        let result = self
            .primitive("aten::where", args![condition, a, b], || self.elementwise(&inputs, dtype));
        let arguments: Vec<&Tensor> = [a.tensor(), b.tensor()].into_iter().flatten().collect();
        let save = |_: &[bool]| vec![Some(condition.clone())];
        let size = arguments.len();
        self.record(
            "WhereBackward0",
            &recorded(&arguments, &[&result]),
            save,
            move |eager, saved, gradients| {
                (0..size)
                    .map(|at| {
                        let g = gradients[0].as_ref().filter(|_| saved.needs(at))?;
                        Some(eager.call("aten::where", args![saved.tensor(0), g, 0_i64], || {
                            eager.elementwise(&[g, saved.tensor(0)], g.dtype())
                        }))
                    })
                    .collect()
            },
        );
        result
    }

    /// `aten::masked_fill`, and in place.
    pub(crate) fn masked_fill(
        &self,
        x: &Tensor,
        mask: &Tensor,
        value: &Operand,
        in_place: bool,
    ) -> Tensor {
        let name = if in_place { "aten::masked_fill_" } else { "aten::masked_fill" };
        let result = self.primitive(name, args![x, mask, value], || {
            if in_place {
                return x.clone();
            }
            let dims = super::broadcast(x.dims(), mask.dims());
            self.call("aten::clone", args![x, 0_i64], || {
                if dims == x.dims() { self.like(x) } else { self.empty(&dims, x.dtype()) }
            })
        });
        let save = |_: &[bool]| vec![Some(mask.clone())];
        self.record(
            "MaskedFillBackward0",
            &recorded(&[x], &[&result]),
            save,
            |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    eager.call("aten::masked_fill", args![g, saved.tensor(0), 0_i64], || {
                        eager.call("aten::clone", args![g, 0_i64], || eager.like(g))
                    })
                })]
            },
        );
        result
    }

    /// `aten::clamp` and its one-sided forms: zeros where the bounds cut.
    pub(crate) fn clamp(
        &self,
        name: &'static str,
        node: &'static str,
        x: &Tensor,
        bounds: usize,
    ) -> Tensor {
        let result = self.primitive(name, args![x], || self.elementwise(&[x], x.dtype()));
        let save = |_: &[bool]| vec![Some(x.clone())];
        self.record(node, &recorded(&[x], &[&result]), save, move |eager, saved, gradients| {
            vec![gradients[0].as_ref().map(|g| {
                let x = saved.tensor(0);
                let masks: Vec<Tensor> = (0..bounds)
                    .map(|_| {
                        eager.call("aten::ge", args![x, 0_i64], || eager.like_of(x, DType::Bool))
                    })
                    .collect();
                let mask = match masks.as_slice() {
                    [a, b] => eager.call("aten::logical_and_", args![a, b], || a.clone()),
                    [a, ..] => a.clone(),
                    [] => return g.clone(),
                };
                eager.call("aten::where", args![mask, g, 0_i64], || eager.like(g))
            })]
        });
        result
    }
}

/// What an operator of one tensor keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SavesFor {
    Input,
    Result,
    Nothing,
}
