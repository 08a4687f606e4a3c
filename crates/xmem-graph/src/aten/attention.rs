//! Attention (aten/src/ATen/native/transformers/attention.cpp).

use super::recorded;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::{Tensor, contiguous_strides, dense_strides};

/// Arguments of `scaled_dot_product_attention`.
pub(crate) struct Attention<'a> {
    pub(crate) query: &'a Tensor,
    pub(crate) key: &'a Tensor,
    pub(crate) value: &'a Tensor,
    pub(crate) mask: Option<&'a Tensor>,
    pub(crate) dropout: f64,
    pub(crate) causal: bool,
    pub(crate) scale: Option<f64>,
    pub(crate) gqa: bool,
}

impl Eager {
    /// `aten::scaled_dot_product_attention` by the CPU's flash kernel, whatever the arguments: which kernel a GPU
    /// takes follows from the arguments alone.
    pub(crate) fn attention(&self, a: &Attention<'_>) -> Tensor {
        let Attention { query, key, value, mask, dropout, causal, scale, gqa } = *a;
        let outer = args![query, key, value, mask, dropout, causal, scale, gqa];
        self.call("aten::scaled_dot_product_attention", outer, || {
            let inner = args![query, key, value, dropout, causal, mask, scale];
            let name = "aten::_scaled_dot_product_flash_attention_for_cpu";
            let mut dims = query.dims().to_vec();
            if let Some(last) = dims.last_mut() {
                *last = value.dim(-1);
            }
            let (heads, length) = (query.dim(-3), query.dim(-2));
            let batch = if query.rank() == 4 { query.dim(0) } else { 1 };
            let (result, log_sums) = self.primitive(name, inner, || {
                let result = self.call("aten::empty_like", args![query], || {
                    let same = query.dims() == dims;
                    let strides =
                        if same { dense_strides(query) } else { contiguous_strides(&dims) };
                    self.empty_strided(dims.clone(), strides, query.dtype())
                });
                let wide = if query.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
                (result, self.empty_called(&[batch, length, heads], wide))
            });
            let save = |_: &[bool]| {
                vec![
                    Some(query.clone()),
                    Some(key.clone()),
                    Some(value.clone()),
                    Some(result.clone()),
                    Some(log_sums.clone()),
                    mask.cloned(),
                ]
            };
            let node = "ScaledDotProductFlashAttentionForCpuBackward0";
            self.record(
                node,
                &recorded(&[query, key, value], &[&result]),
                save,
                move |eager, saved, gradients| {
                    let Some(g) = &gradients[0] else { return Vec::new() };
                    let inputs: Vec<&Tensor> = (0..3).map(|at| saved.tensor(at)).collect();
                    let arguments = args![
                        g,
                        inputs[0],
                        inputs[1],
                        inputs[2],
                        saved.tensor(3),
                        saved.tensor(4),
                        dropout,
                        causal,
                        saved.maybe(5),
                        scale
                    ];
                    eager.call(
                        "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                        arguments,
                        || {
                            inputs
                                .iter()
                                .map(|x| {
                                    let (b, h, n, d) = (x.dim(0), x.dim(-3), x.dim(-2), x.dim(-1));
                                    let flat = eager.zeros_called(&[b, n, h, d], x.dtype());
                                    Some(eager.call(
                                        "aten::transpose",
                                        args![flat, 1_i64, 2_i64],
                                        || {
                                            let row = h.saturating_mul(d);
                                            flat.view(
                                                vec![b, h, n, d],
                                                vec![n.saturating_mul(row), d, row, 1],
                                            )
                                        },
                                    ))
                                })
                                .collect()
                        },
                    )
                },
            );
            result
        })
    }
}
