//! Embeddings (aten/src/ATen/native/Embedding.cpp, EmbeddingBag.cpp).

use super::recorded;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, args};
use crate::eager::tensor::Tensor;

impl Eager {
    /// `aten::embedding`.
    pub(crate) fn embedding(&self, weight: &Tensor, indices: &Tensor, padding: i64) -> Tensor {
        let mut dims = indices.dims().to_vec();
        dims.push(weight.dim(1));
        let result = self.primitive(
            "aten::embedding",
            args![weight, indices, padding, false, false],
            || {
                let rows = indices.elements();
                let found = self.call("aten::index_select", args![weight, 0_i64, indices], || {
                    self.empty(&[rows, weight.dim(1)], weight.dtype())
                });
                let strides = crate::eager::tensor::contiguous_strides(&dims);
                found.view(dims.clone(), strides)
            },
        );
        let count = weight.dim(0);
        let save = |_: &[bool]| vec![Some(indices.clone())];
        self.record(
            "EmbeddingBackward0",
            &recorded(&[weight], &[&result]),
            save,
            move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let indices = saved.tensor(0);
                    let arguments = args![g, indices, count, padding, false, false];
                    eager.call("aten::embedding_backward", arguments, || {
                        let arguments = args![g, indices, count, padding, false];
                        eager.call("aten::embedding_dense_backward", arguments, || {
                            eager.zeros_called(&[count, g.dim(-1)], g.dtype())
                        })
                    })
                })]
            },
        );
        result
    }

    /// `aten::embedding_bag`.
    pub(crate) fn embedding_bag(
        &self,
        weight: &Tensor,
        indices: &Tensor,
        offsets: &Tensor,
        mode: i64,
    ) -> Tensor {
        let arguments = args![weight, indices, offsets, false, mode, false, Absent, false, -1_i64];
        self.call("aten::embedding_bag", arguments.clone(), || {
            let bags = offsets.dim(0);
            let (result, size, most) = self.primitive("aten::_embedding_bag", arguments, || {
                let result = self.empty_called(&[bags, weight.dim(1)], weight.dtype());
                (
                    result,
                    self.empty_called(&[bags], DType::I64),
                    self.empty_called(&[bags], DType::I64),
                )
            });
            let offset2bag = self.without_gradients(|| self.empty_called(&[0], DType::I64));
            let count = weight.dim(0);
            let save = |_: &[bool]| {
                vec![
                    Some(indices.clone()),
                    Some(offsets.clone()),
                    Some(offset2bag.clone()),
                    Some(size.clone()),
                    Some(most.clone()),
                ]
            };
            self.record(
                "EmbeddingBagBackward0",
                &recorded(&[weight], &[&result]),
                save,
                move |eager, saved, gradients| {
                    vec![gradients[0].as_ref().map(|g| {
                        let arguments = args![
                            g,
                            saved.tensor(0),
                            saved.tensor(1),
                            saved.tensor(2),
                            saved.tensor(3),
                            saved.tensor(4),
                            count,
                            false,
                            mode,
                            false,
                            Absent,
                            -1_i64
                        ];
                        eager.call("aten::_embedding_bag_backward", arguments, || {
                            let arguments = args![
                                g,
                                saved.tensor(0),
                                saved.tensor(0),
                                saved.tensor(3),
                                saved.tensor(4),
                                count,
                                false,
                                mode,
                                Absent,
                                -1_i64
                            ];
                            eager.call("aten::_embedding_bag_dense_backward", arguments, || {
                                eager.zeros_called(&[count, g.dim(-1)], g.dtype())
                            })
                        })
                    })]
                },
            );
            result
        })
    }
}
