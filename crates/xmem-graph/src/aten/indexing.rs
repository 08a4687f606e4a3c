//! Gathering, scattering and sorting.

use super::{axis, broadcast, recorded};
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, args};
use crate::eager::tensor::Tensor;

impl Eager {
    /// `aten::index` with tensors of indices (FunctionsManual.cpp, `index_backward`). Sizes of masks depend on
    /// values: `dims` are those of the graph.
    pub(crate) fn index(
        &self,
        x: &Tensor,
        indices: &[Option<Tensor>],
        dims: Option<Vec<i64>>,
    ) -> Tensor {
        let dims = dims.unwrap_or_else(|| indexed(x, indices));
        let result = self.primitive("aten::index", args![x, Absent], || {
            // A mask is turned into the places where it is true.
            let places = indices.iter().zip(&dims);
            let masks = places.filter_map(|(index, dim)| Some((index.as_ref()?, *dim)));
            let masks = masks.filter(|(index, _)| index.dtype().is_of_masks());
            let chosen: Vec<Tensor> = masks.map(|(mask, n)| self.nonzero(mask, n)).collect();
            let result = self.empty(&dims, x.dtype());
            drop(chosen);
            result
        });
        let from = x.dims().to_vec();
        let save = |_: &[bool]| indices.to_vec();
        self.record(
            "IndexBackward0",
            &recorded(&[x], &[&result]),
            save,
            move |eager, _, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let zeros = eager.call("aten::new_zeros", args![g, from], || {
                        let zeros = eager.empty_called(&from, g.dtype());
                        eager.call("aten::zero_", args![zeros], || ());
                        zeros
                    });
                    eager.call(
                        "aten::_index_put_impl_",
                        args![zeros, Absent, g, true, true],
                        || (),
                    );
                    zeros
                })]
            },
        );
        result
    }

    /// `aten::nonzero` of a tensor, of which so many elements are not zero.
    pub(crate) fn nonzero(&self, x: &Tensor, count: i64) -> Tensor {
        let rank = i64::try_from(x.rank()).unwrap_or(i64::MAX);
        self.call("aten::nonzero", args![x], || self.empty(&[count, rank], DType::I64))
    }

    /// `aten::masked_select` of so many elements (FunctionsManual.cpp, `masked_select_backward`).
    pub(crate) fn masked_select(&self, x: &Tensor, mask: &Tensor, count: i64) -> Tensor {
        let result = self.primitive("aten::masked_select", args![x, mask], || {
            let chosen = self.nonzero(mask, count);
            let result = self.empty(&[count], x.dtype());
            drop(chosen);
            result
        });
        let from = x.dims().to_vec();
        let save = |_: &[bool]| vec![Some(mask.clone())];
        self.record(
            "MaskedSelectBackward0",
            &recorded(&[x], &[&result]),
            save,
            move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let zeros = eager.zeros_called(&from, g.dtype());
                    eager.call("aten::masked_scatter_", args![zeros, saved.tensor(0), g], || ());
                    zeros
                })]
            },
        );
        result
    }

    /// `aten::index_select`.
    pub(crate) fn index_select(&self, x: &Tensor, dim: i64, index: &Tensor) -> Tensor {
        let mut dims = x.dims().to_vec();
        if let Some(size) = dims.get_mut(axis(dim, x.rank())) {
            *size = index.elements();
        }
        let result = self
            .primitive("aten::index_select", args![x, dim, index], || self.empty(&dims, x.dtype()));
        let from = x.dims().to_vec();
        let save = |_: &[bool]| vec![Some(index.clone())];
        self.record(
            "IndexSelectBackward0",
            &recorded(&[x], &[&result]),
            save,
            move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let zeros = eager.zeros_called(&from, g.dtype());
                    eager.call(
                        "aten::index_add_",
                        args![zeros, dim, saved.tensor(0), g, 1_i64],
                        || (),
                    );
                    zeros
                })]
            },
        );
        result
    }

    /// `aten::gather`.
    pub(crate) fn gather(&self, x: &Tensor, dim: i64, index: &Tensor) -> Tensor {
        let result = self.primitive("aten::gather", args![x, dim, index, false], || {
            self.empty(index.dims(), x.dtype())
        });
        let from = x.dims().to_vec();
        let save = |_: &[bool]| vec![Some(index.clone())];
        self.record(
            "GatherBackward0",
            &recorded(&[x], &[&result]),
            save,
            move |eager, saved, gradients| {
                vec![gradients[0].as_ref().map(|g| {
                    let zeros = eager.call("aten::new_zeros", args![g, from], || {
                        eager.empty_called(&from, g.dtype())
                    });
                    eager.call("aten::scatter_add_", args![zeros, dim, saved.tensor(0), g], || ());
                    zeros
                })]
            },
        );
        result
    }

    /// `aten::scatter`, `scatter_add`, `index_add`, `index_put`: a copy of the first, then written.
    pub(crate) fn written(
        &self,
        (name, node): (&'static str, &'static str),
        x: &Tensor,
        index: &Tensor,
        source: Option<&Tensor>,
    ) -> Tensor {
        let result = self.primitive(name, args![x, index, source], || {
            let copy = self.like(x);
            self.call("aten::copy_", args![copy, x, false], || ());
            copy
        });
        let arguments: Vec<&Tensor> = [Some(x), source].into_iter().flatten().collect();
        let save = |_: &[bool]| vec![Some(index.clone())];
        let sizes = source.map(|s| s.dims().to_vec());
        self.record(
            node,
            &recorded(&arguments, &[&result]),
            save,
            move |eager, saved, gradients| {
                let Some(g) = &gradients[0] else { return Vec::new() };
                let of_source = sizes.as_ref().filter(|_| saved.needs(1)).map(|dims| {
                    eager.call("aten::index_select", args![g, 0_i64, saved.tensor(0)], || {
                        eager.empty(dims, g.dtype())
                    })
                });
                vec![saved.needs(0).then(|| g.clone()), of_source]
            },
        );
        result
    }

    /// `aten::topk` and `sort`.
    pub(crate) fn ordered(
        &self,
        (name, node): (&'static str, &'static str),
        x: &Tensor,
        (dim, count): (i64, Option<i64>),
    ) -> (Tensor, Tensor) {
        let mut dims = x.dims().to_vec();
        if let (Some(count), Some(size)) = (count, dims.get_mut(axis(dim, x.rank()))) {
            *size = count;
        }
        let arguments = match count {
            Some(count) => args![x, count, dim, true, true],
            None => args![x, dim, false],
        };
        let (values, indices) = self.primitive(name, arguments, || {
            (self.empty(&dims, x.dtype()), self.empty(&dims, DType::I64))
        });
        self.selected(node, x, (&values, &indices));
        (values, indices)
    }
}

/// Sizes of a result (aten/src/ATen/native/TensorAdvancedIndexing.cpp): the indices' own, where the first of them
/// stands if they are next to each other, else in front.
fn indexed(x: &Tensor, indices: &[Option<Tensor>]) -> Vec<i64> {
    let given: Vec<usize> =
        indices.iter().enumerate().filter(|(_, i)| i.is_some()).map(|(at, _)| at).collect();
    let own = indices.iter().flatten().fold(Vec::new(), |dims, t| broadcast(&dims, t.dims()));
    let adjacent = given.windows(2).all(|w| w[1] == w[0] + 1);
    let place = if adjacent { given.first().copied().unwrap_or(0) } else { 0 };
    let mut dims: Vec<i64> = x
        .dims()
        .iter()
        .enumerate()
        .filter(|(at, _)| !given.contains(at))
        .map(|(_, &d)| d)
        .collect();
    let place = place.min(dims.len());
    dims.splice(place..place, own);
    dims
}
