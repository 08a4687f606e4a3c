//! Matrix products (aten/src/ATen/native/Linear.cpp, LinearAlgebra.cpp).

use super::{broadcast, recorded};
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::{Tensor, count};

impl Eager {
    /// `aten::linear`.
    pub(crate) fn linear(&self, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        self.call("aten::linear", args![x, weight, bias], || {
            let flattens = bias.is_some() && x.rank() >= 3 && x.is_contiguous();
            match bias {
                Some(bias) if x.rank() == 2 => {
                    let transposed = self.t(weight);
                    self.addmm(bias, x, &transposed)
                }
                Some(bias) if flattens => {
                    let flat = self.view(x, &[-1, x.dim(-1)]);
                    let transposed = self.t(weight);
                    let product = self.addmm(bias, &flat, &transposed);
                    let mut dims = x.dims().to_vec();
                    if let Some(last) = dims.last_mut() {
                        *last = product.dim(-1);
                    }
                    self.view(&product, &dims)
                }
                Some(bias) => {
                    let transposed = self.t(weight);
                    let product = self.matmul(x, &transposed);
                    self.binary_in_place(super::arithmetic::Binary::Add, &product, &bias.into())
                }
                None => {
                    let transposed = self.t(weight);
                    self.matmul(x, &transposed)
                }
            }
        })
    }

    /// `aten::addmm`.
    pub(crate) fn addmm(&self, bias: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        let dims = [a.dim(0), b.dim(1)];
        let result = self.primitive("aten::addmm", args![bias, a, b, 1_i64, 1_i64], || {
            self.empty(&dims, a.dtype())
        });
        let save = |needed: &[bool]| {
            vec![Some(a.clone()).filter(|_| needed[2]), Some(b.clone()).filter(|_| needed[1])]
        };
        let (a_turned, b_turned) = (is_column_major(a), is_column_major(b));
        self.record(
            "AddmmBackward0",
            &recorded(&[bias, a, b], &[&result]),
            save,
            move |eager, saved, gradients| {
                let Some(g) = &gradients[0] else { return Vec::new() };
                let a = saved.needs(1).then(|| eager.left_gradient(g, saved.tensor(1), a_turned));
                let b = saved.needs(2).then(|| eager.right_gradient(g, saved.tensor(0), b_turned));
                vec![saved.needs(0).then(|| g.clone()), a, b]
            },
        );
        result
    }

    /// `aten::mm`.
    pub(crate) fn mm(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let result = self
            .primitive("aten::mm", args![a, b], || self.empty(&[a.dim(0), b.dim(1)], a.dtype()));
        let save = |needed: &[bool]| {
            vec![Some(a.clone()).filter(|_| needed[1]), Some(b.clone()).filter(|_| needed[0])]
        };
        let (a_turned, b_turned) = (is_column_major(a), is_column_major(b));
        self.record(
            "MmBackward0",
            &recorded(&[a, b], &[&result]),
            save,
            move |eager, saved, gradients| {
                let Some(g) = &gradients[0] else { return Vec::new() };
                // The second one first: arguments in derivatives.yaml are tried from the last.
                let b = saved.needs(1).then(|| eager.right_gradient(g, saved.tensor(0), b_turned));
                let a = saved.needs(0).then(|| eager.left_gradient(g, saved.tensor(1), a_turned));
                vec![a, b]
            },
        );
        result
    }

    /// FunctionsManual.cpp, `mm_mat1_grad`: the gradient lies in memory as its matrix does.
    fn left_gradient(&self, g: &Tensor, b: &Tensor, is_transposed: bool) -> Tensor {
        if is_transposed {
            let transposed = self.t(g);
            let product = self.product("aten::mm", b, &transposed);
            return self.t(&product);
        }
        let transposed = self.t(b);
        self.product("aten::mm", g, &transposed)
    }

    /// FunctionsManual.cpp, `mm_mat2_grad`.
    fn right_gradient(&self, g: &Tensor, a: &Tensor, is_transposed: bool) -> Tensor {
        if is_transposed {
            let transposed = self.t(g);
            let product = self.product("aten::mm", &transposed, a);
            return self.t(&product);
        }
        let transposed = self.t(a);
        self.product("aten::mm", &transposed, g)
    }

    fn product(&self, name: &'static str, a: &Tensor, b: &Tensor) -> Tensor {
        let mut dims = a.dims().to_vec();
        if let Some(last) = dims.last_mut() {
            *last = b.dim(-1);
        }
        self.call(name, args![a, b], || self.empty(&dims, a.dtype()))
    }

    /// `aten::bmm`.
    pub(crate) fn bmm(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let dims = [a.dim(0), a.dim(1), b.dim(2)];
        let result = self.primitive("aten::bmm", args![a, b], || self.empty(&dims, a.dtype()));
        let save = |needed: &[bool]| {
            vec![Some(b.clone()).filter(|_| needed[0]), Some(a.clone()).filter(|_| needed[1])]
        };
        self.record(
            "BmmBackward0",
            &recorded(&[a, b], &[&result]),
            save,
            |eager, saved, gradients| {
                let Some(g) = &gradients[0] else { return Vec::new() };
                let b = saved.needs(1).then(|| {
                    let a = eager.transpose(saved.tensor(1), 1, 2);
                    eager.product("aten::bmm", &a, g)
                });
                let a = saved.needs(0).then(|| {
                    let b = eager.transpose(saved.tensor(0), 1, 2);
                    eager.product("aten::bmm", g, &b)
                });
                vec![a, b]
            },
        );
        result
    }

    /// `aten::baddbmm`.
    pub(crate) fn baddbmm(&self, input: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        let dims = [a.dim(0), a.dim(1), b.dim(2)];
        let result = self.primitive("aten::baddbmm", args![input, a, b, 1_i64, 1_i64], || {
            self.empty(&dims, a.dtype())
        });
        let save = |needed: &[bool]| {
            vec![Some(b.clone()).filter(|_| needed[1]), Some(a.clone()).filter(|_| needed[2])]
        };
        self.record(
            "BaddbmmBackward0",
            &recorded(&[input, a, b], &[&result]),
            save,
            |eager, saved, gradients| {
                let Some(g) = &gradients[0] else { return Vec::new() };
                let a = saved.needs(1).then(|| {
                    let b = eager.transpose(saved.tensor(0), 1, 2);
                    eager.product("aten::bmm", g, &b)
                });
                let b = saved.needs(2).then(|| {
                    let a = eager.transpose(saved.tensor(1), 1, 2);
                    eager.product("aten::bmm", &a, g)
                });
                vec![saved.needs(0).then(|| g.clone()), a, b]
            },
        );
        result
    }

    /// `aten::matmul` (LinearAlgebra.cpp, `_matmul_impl`).
    pub(crate) fn matmul(&self, a: &Tensor, b: &Tensor) -> Tensor {
        self.call("aten::matmul", args![a, b], || match (a.rank(), b.rank()) {
            (1, 1) => {
                let row = self.unsqueeze(a, 0);
                let column = self.unsqueeze(b, 1);
                let product = self.mm(&row, &column);
                self.view(&product, &[])
            }
            (2, 2) => self.mm(a, b),
            (2, 1) => {
                let column = self.unsqueeze(b, 1);
                let product = self.mm(a, &column);
                self.squeeze(&product, Some(-1))
            }
            (1, 2) => {
                let row = self.unsqueeze(a, 0);
                let product = self.mm(&row, b);
                self.squeeze(&product, Some(0))
            }
            (rank, 1 | 2) if rank >= 3 && folds(a, b) => self.folded(a, b),
            (1 | 2, rank) if rank >= 3 && folds(b, a) => {
                // Folded the other way around, and turned back.
                let (at, bt) = (self.transpose(a, -1, 0), self.transpose(b, -2, -1));
                let product = self.folded(&bt, &at);
                if a.rank() == 2 { self.transpose(&product, -2, -1) } else { product }
            }
            _ => self.batched(a, b),
        })
    }

    fn folded(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let mut dims = a.dims().to_vec();
        dims.pop();
        let rows = count(&dims);
        let flat = self.reshape(a, &[rows, a.dim(-1)]);
        if b.rank() == 1 {
            let column = self.unsqueeze(b, 1);
            let product = self.mm(&flat, &column);
            return self.unsafe_view(&product, &dims);
        }
        dims.push(b.dim(1));
        let product = self.mm(&flat, b);
        self.unsafe_view(&product, &dims)
    }

    fn batched(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let a = &if a.rank() == 1 { self.unsqueeze(a, 0) } else { a.clone() };
        let column = b.rank() == 1;
        let b = &if column { self.unsqueeze(b, 1) } else { b.clone() };
        let (m, k, n) = (a.dim(-2), a.dim(-1), b.dim(-1));
        let batch = broadcast(&a.dims()[..a.rank() - 2], &b.dims()[..b.rank() - 2]);
        let matrices = count(&batch);
        let with = |tail: [i64; 2]| batch.iter().copied().chain(tail).collect::<Vec<i64>>();
        let a = self.expand(a, &with([m, k]));
        let a = self.reshape(&a, &[matrices, m, k]);
        let b = self.expand(b, &with([k, n]));
        let b = self.reshape(&b, &[matrices, k, n]);
        let product = self.bmm(&a, &b);
        drop((a, b));
        let dims = if column { batch.iter().copied().chain([m]).collect() } else { with([m, n]) };
        self.unsafe_view(&product, &dims)
    }
}

/// LinearAlgebra.cpp, `should_fold`: the larger tensor is folded into a matrix if it lies in memory as one, or
/// needs a gradient.
fn folds(larger: &Tensor, smaller: &Tensor) -> bool {
    if larger.requires_grad() && !larger.dims().is_empty() {
        return true;
    }
    if smaller.rank() == 1 {
        return true;
    }
    let (dims, strides) = (larger.dims(), larger.strides());
    larger.elements() == 0
        || (0..dims.len().saturating_sub(2))
            .all(|i| strides[i] == strides[i + 1].saturating_mul(dims[i + 1]))
}

fn is_column_major(x: &Tensor) -> bool {
    x.rank() == 2 && x.strides()[0] == 1 && x.strides()[1] == x.dims()[0]
}
