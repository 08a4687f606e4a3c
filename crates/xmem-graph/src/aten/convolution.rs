//! Convolutions (aten/src/ATen/native/Convolution.cpp).

use super::recorded;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::Tensor;

/// The numbers of a convolution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Geometry {
    pub(crate) stride: Vec<i64>,
    pub(crate) padding: Vec<i64>,
    pub(crate) dilation: Vec<i64>,
    pub(crate) output_padding: Vec<i64>,
    pub(crate) transposed: bool,
    pub(crate) groups: i64,
}

/// Fills a list of one number up to all dimensions.
pub(crate) fn spread(values: &[i64], rank: usize, default: i64) -> Vec<i64> {
    match values {
        [] => vec![default; rank],
        [one] => vec![*one; rank],
        all => all.to_vec(),
    }
}

impl Geometry {
    /// Sizes of the result (aten/src/ATen/native/ConvUtils.h, `conv_output_size`, `conv_input_size`).
    pub(crate) fn result(&self, x: &[i64], weight: &[i64]) -> Vec<i64> {
        let (Some(&batch), [out, within, ..]) = (x.first(), weight) else { return x.to_vec() };
        let channels = if self.transposed { within.saturating_mul(self.groups) } else { *out };
        let mut dims = vec![batch, channels];
        for at in 0..x.len().min(weight.len()).saturating_sub(2) {
            let number = |list: &[i64]| list.get(at).copied().unwrap_or(0);
            let (stride, padding) = (number(&self.stride), number(&self.padding));
            let kernel =
                number(&self.dilation).saturating_mul(weight[at + 2] - 1).saturating_add(1);
            let size = x[at + 2];
            dims.push(if self.transposed {
                let whole = size.saturating_sub(1).saturating_mul(stride).saturating_add(kernel);
                whole
                    .saturating_sub(padding.saturating_mul(2))
                    .saturating_add(number(&self.output_padding))
                    .max(0)
            } else {
                let span = size.saturating_add(padding.saturating_mul(2)).saturating_sub(kernel);
                (span / stride.max(1)).saturating_add(1).max(0)
            });
        }
        dims
    }
}

impl Eager {
    /// A new image, of four sizes, whose channels lie next to each other.
    pub(super) fn channels_last(&self, dims: &[i64], dtype: DType) -> Tensor {
        let (c, h, w) = (dims[1], dims[2], dims[3]);
        let row = w.saturating_mul(c);
        self.strided(dims.to_vec(), vec![row.saturating_mul(h), 1, row, c], dtype)
    }

    /// `aten::conv1d` … `aten::conv_transpose3d`.
    pub(crate) fn convolution(
        &self,
        name: &'static str,
        (x, weight, bias): (&Tensor, &Tensor, Option<&Tensor>),
        geometry: &Geometry,
    ) -> Tensor {
        let g = geometry;
        let arguments = if g.transposed {
            args![x, weight, bias, g.stride, g.padding, g.output_padding, g.groups, g.dilation]
        } else {
            args![x, weight, bias, g.stride, g.padding, g.dilation, g.groups]
        };
        self.call(name, arguments, || {
            // A single sample without a batch.
            if x.rank() + 1 == weight.rank() {
                let batch = self.unsqueeze(x, 0);
                let result = self.convolved((&batch, weight, bias), g);
                return self.squeeze(&result, Some(0));
            }
            self.convolved((x, weight, bias), g)
        })
    }

    fn convolved(
        &self,
        (x, weight, bias): (&Tensor, &Tensor, Option<&Tensor>),
        g: &Geometry,
    ) -> Tensor {
        let arguments = args![
            x,
            weight,
            bias,
            g.stride,
            g.padding,
            g.dilation,
            g.transposed,
            g.output_padding,
            g.groups
        ];
        let dims = g.result(x.dims(), weight.dims());
        let channels_last = lies_channels_last(x) || lies_channels_last(weight);
        let result = self.primitive("aten::convolution", arguments, || {
            let arguments = args![
                x,
                weight,
                bias,
                g.stride,
                g.padding,
                g.dilation,
                g.transposed,
                g.output_padding,
                g.groups,
                false,
                false,
                true,
                true
            ];
            self.call("aten::_convolution", arguments, || {
                let make = || {
                    if channels_last && dims.len() == 4 {
                        self.channels_last(&dims, x.dtype())
                    } else {
                        self.empty_called(&dims, x.dtype())
                    }
                };
                if g.transposed {
                    return make();
                }
                let arguments = args![x, weight, bias, g.padding, g.stride, g.dilation, g.groups];
                self.call("aten::mkldnn_convolution", arguments, make)
            })
        });
        let bias_size = bias.map(|b| b.dims().to_vec());
        let arguments: Vec<&Tensor> = [Some(x), Some(weight), bias].into_iter().flatten().collect();
        let save = |_: &[bool]| vec![Some(x.clone()), Some(weight.clone())];
        let g = g.clone();
        self.record(
            "ConvolutionBackward0",
            &recorded(&arguments, &[&result]),
            save,
            move |eager, saved, gradients| {
                let Some(gradient) = &gradients[0] else { return Vec::new() };
                let (x, weight) = (saved.tensor(0), saved.tensor(1));
                let sizes = bias_size.clone().unwrap_or_else(|| vec![0]);
                let mask = [saved.needs(0), saved.needs(1), saved.needs(2)];
                let arguments = args![
                    gradient,
                    x,
                    weight,
                    sizes,
                    g.stride,
                    g.padding,
                    g.dilation,
                    g.transposed,
                    g.output_padding,
                    g.groups,
                    mask
                ];
                eager.call("aten::convolution_backward", arguments, || {
                    // Gradients of a slice have gaps, as behind a concatenation.
                    let is_plain = !lies_channels_last(x) && !lies_channels_last(weight);
                    let _contiguous = is_plain.then(|| eager.contiguous(gradient));
                    let of_input = mask[0].then(|| {
                        if lies_channels_last(x) {
                            eager.like(x)
                        } else {
                            eager.empty_called(x.dims(), x.dtype())
                        }
                    });
                    let of_weight =
                        mask[1].then(|| eager.empty_called(weight.dims(), weight.dtype()));
                    let of_bias = mask[2].then(|| eager.empty_called(&sizes, weight.dtype()));
                    vec![of_input, of_weight, of_bias]
                })
            },
        );
        result
    }
}

/// Returns whether the channels of an image lie next to each other (`suggest_memory_format`).
pub(super) fn lies_channels_last(x: &Tensor) -> bool {
    x.rank() == 4 && x.dims()[1] != 1 && x.strides()[1] == 1 && !x.is_contiguous()
}
