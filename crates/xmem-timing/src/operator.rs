//! Work of an operator: floating-point operations and bytes, from its name, the shapes of its arguments and its
//! outputs.

use xmem_types::{Bytes, saturating_product};

/// The arithmetic that an operator's elements ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `float64`
    Float64,
    /// `float32` in full precision.
    Float32,
    /// `float32` whose products are made on tensor cores: convolutions by PyTorch's default
    /// (`torch.backends.cudnn.allow_tf32`), matrix products only if the program allows it
    /// (`torch.backends.cuda.matmul.allow_tf32`).
    TensorFloat32,
    /// `float16`
    Float16,
    /// `bfloat16`
    BFloat16,
    /// Anything else, with the bytes of an element.
    Other(u8),
}

impl Precision {
    /// Bytes of an element.
    #[must_use]
    pub const fn element(self) -> u64 {
        match self {
            Self::Float64 => 8,
            Self::Float32 | Self::TensorFloat32 => 4,
            Self::Float16 | Self::BFloat16 => 2,
            Self::Other(bytes) => bytes as u64,
        }
    }
}

/// A tensor argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor<'a> {
    /// Extents, outermost first.
    pub extents: &'a [u64],
    /// Element type.
    pub precision: Precision,
}

impl Tensor<'_> {
    fn elements(self) -> u64 {
        saturating_product(self.extents)
    }

    fn bytes(self) -> u64 {
        self.elements().saturating_mul(self.precision.element())
    }

    /// The extent at `position`, counted from the end for negative ones; 1 where there is none.
    fn extent(self, position: isize) -> u64 {
        let at = if position < 0 {
            self.extents.len().checked_add_signed(position)
        } else {
            usize::try_from(position).ok()
        };
        at.and_then(|at| self.extents.get(at)).copied().unwrap_or(1)
    }
}

/// Work of one operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations; a multiply-add is two. Zero where the traffic decides.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: Bytes,
    /// Arithmetic of the operations.
    pub precision: Precision,
}

impl Work {
    /// The work of the operator called `name` (`aten::mm`) with these tensor arguments, in order, those of lists
    /// included, and the bytes of its outputs. In-place operators have no output of their own: give the bytes that
    /// they write.
    ///
    /// Operations are counted for matrix products, convolutions and attention ([`has_formula`]):
    ///
    /// | operator | operations |
    /// |---|---|
    /// | `mm`, `addmm`, `bmm`, `baddbmm`, `linear` | 2 × rows × inner × columns (× batch) |
    /// | `convolution` | 2 × elements of the output × weights of one output channel |
    /// | `convolution_backward` | twice that of its forward |
    /// | attention | 2 × elements of the query × length of the keys, for each of the two products; backward 5/2 times. Causal masks are not seen |
    ///
    /// Extents are those of PyTorch's signatures (native_functions.yaml). Of convolutions that are transposed, the
    /// operations are too many by the ratio of output to input. Products of eight-bit types (`_scaled_mm`) are taken
    /// at the rate of `bfloat16`.
    #[must_use]
    pub fn of_operator(name: &str, arguments: &[Tensor<'_>], outputs: Bytes) -> Self {
        let read = arguments.iter().fold(0, |sum: u64, t| sum.saturating_add(t.bytes()));
        let flops = formula(name).and_then(|formula| formula.flops(arguments, outputs));
        let precision = arguments.iter().map(|t| t.precision).find(|p| !is_index(*p));
        let without = if flops.is_some() { Precision::BFloat16 } else { Precision::Float32 };
        Self {
            flops: flops.unwrap_or(0),
            bytes: Bytes(read.saturating_add(outputs.get())),
            precision: precision.unwrap_or(without),
        }
    }
}

fn is_index(precision: Precision) -> bool {
    matches!(precision, Precision::Other(_))
}

/// Returns whether operations of the operator called `name` are counted, with all operators inside it.
#[must_use]
pub fn has_formula(name: &str) -> bool {
    formula(name).is_some()
}

/// Returns whether the operator called `name` starts no kernel by itself: views, and memory that is not filled.
#[must_use]
pub fn starts_no_kernel(name: &str) -> bool {
    let name = name.strip_prefix("aten::").unwrap_or(name);
    const NAMES: [&str; 43] = [
        "_reshape_alias",
        "_unsafe_view",
        "alias",
        "as_strided",
        "as_strided_",
        "chunk",
        "detach",
        "detach_",
        "diagonal",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "expand",
        "expand_as",
        "flatten",
        "lift_fresh",
        "movedim",
        "narrow",
        "new_empty",
        "new_empty_strided",
        "numpy_T",
        "permute",
        "record_stream",
        "resize_",
        "resolve_conj",
        "resolve_neg",
        "result_type",
        "select",
        "set_",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "swapaxes",
        "t",
        "transpose",
        "unbind",
        "unflatten",
        "unfold",
        "unsqueeze",
        "view",
        "view_as",
    ];
    NAMES.binary_search(&name).is_ok()
}

#[derive(Clone, Copy)]
enum Formula {
    /// A product of the matrices at `position` and after it.
    Product(usize),
    /// `linear(input, weight, bias)`: the weight is transposed.
    Linear,
    Convolution,
    ConvolutionBackward,
    /// Attention of queries at `query` and keys after it, whose length is at `length`.
    Attention {
        query: usize,
        length: isize,
        halves: u64,
    },
}

/// Extents of attention: heads before the sequence, or after it (`_flash_attention_forward` and the memory-efficient
/// kernels take the latter).
fn formula(name: &str) -> Option<Formula> {
    let attention = |query, length, halves| Some(Formula::Attention { query, length, halves });
    match name.strip_prefix("aten::").unwrap_or(name) {
        "mm" | "bmm" | "_scaled_mm" => Some(Formula::Product(0)),
        "addmm" | "addmm_" | "_addmm_activation" | "baddbmm" | "baddbmm_" => {
            Some(Formula::Product(1))
        }
        "linear" => Some(Formula::Linear),
        "convolution"
        | "_convolution"
        | "convolution_overrideable"
        | "cudnn_convolution"
        | "_conv_depthwise2d"
        | "conv_depthwise3d" => Some(Formula::Convolution),
        "convolution_backward" => Some(Formula::ConvolutionBackward),
        "scaled_dot_product_attention"
        | "_scaled_dot_product_flash_attention"
        | "_scaled_dot_product_efficient_attention"
        | "_scaled_dot_product_cudnn_attention"
        | "_scaled_dot_product_attention_math" => attention(0, -2, 2),
        "_scaled_dot_product_flash_attention_backward"
        | "_scaled_dot_product_efficient_attention_backward"
        | "_scaled_dot_product_cudnn_attention_backward" => attention(1, -2, 5),
        "_flash_attention_forward" | "_efficient_attention_forward" => attention(0, 1, 2),
        "_flash_attention_backward" | "_efficient_attention_backward" => attention(1, 1, 5),
        _ => None,
    }
}

impl Formula {
    /// The operations, if the arguments are there.
    fn flops(self, arguments: &[Tensor<'_>], outputs: Bytes) -> Option<u64> {
        let at = |position: usize| arguments.get(position).copied();
        Some(match self {
            Self::Product(first) => product(&[2, at(first)?.elements(), at(first + 1)?.extent(-1)]),
            Self::Linear => product(&[2, at(0)?.elements(), at(1)?.extent(0)]),
            Self::Convolution => {
                let (input, weight) = (at(0)?, at(1)?);
                let written = outputs.get() / input.precision.element().max(1);
                product(&[2, written, of_a_channel(weight)])
            }
            Self::ConvolutionBackward => {
                let (gradient, weight) = (at(0)?, at(2)?);
                product(&[4, gradient.elements(), of_a_channel(weight)])
            }
            Self::Attention { query, length, halves } => {
                let (query, key) = (at(query)?, at(query + 1)?);
                product(&[2, halves, query.elements(), key.extent(length)])
            }
        })
    }
}

/// Elements of a convolution's weight for one output channel.
fn of_a_channel(weight: Tensor<'_>) -> u64 {
    weight.elements() / weight.extent(0).max(1)
}

fn product(factors: &[u64]) -> u64 {
    saturating_product(factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_follow_from_shapes() {
        let check = |name: &str, shapes: &[&[u64]], outputs: u64, flops: u64, bytes: u64| {
            let tensors: Vec<Tensor<'_>> = shapes
                .iter()
                .map(|extents| Tensor { extents, precision: Precision::Float32 })
                .collect();
            let work = Work::of_operator(name, &tensors, Bytes(outputs));
            assert_eq!((work.flops, work.bytes), (flops, Bytes(bytes)), "{name} {shapes:?}");
            assert_eq!(has_formula(name), flops > 0, "{name}");
        };
        check("aten::mm", &[&[2, 3], &[3, 5]], 40, 2 * 2 * 3 * 5, 4 * (6 + 15) + 40);
        check("aten::addmm", &[&[5], &[2, 3], &[3, 5]], 40, 60, 4 * (5 + 6 + 15) + 40);
        check("aten::bmm", &[&[7, 2, 3], &[7, 3, 5]], 280, 7 * 60, 4 * 7 * 21 + 280);
        check("aten::baddbmm", &[&[7, 2, 5], &[7, 2, 3], &[7, 3, 5]], 280, 420, 4 * 7 * 31 + 280);
        check("aten::linear", &[&[4, 2, 3], &[5, 3], &[5]], 160, 2 * 8 * 3 * 5, 4 * 44 + 160);
        // 2 images of 8 channels of 6 × 6 from 4 channels by 3 × 3: 576 outputs of 36 weights.
        let (image, weight, result): ([u64; 4], [u64; 4], [u64; 4]) =
            ([2, 4, 8, 8], [8, 4, 3, 3], [2, 8, 6, 6]);
        let forward = 2 * 576 * 36;
        let read = 4 * (512 + 288);
        check("aten::convolution", &[&image, &weight], 4 * 576, forward, read + 4 * 576);
        let back = [&result[..], &image, &weight];
        check("aten::convolution_backward", &back, 3200, 2 * forward, read + 4 * 576 + 3200);
        // 2 groups: each output channel sees 2 of the 4 inputs.
        check(
            "aten::convolution",
            &[&image, &[8, 2, 3, 3]],
            4 * 576,
            forward / 2,
            4 * (512 + 144 + 576),
        );
        // Queries of 5 tokens, keys of 7, 2 × 3 heads of 4.
        let (query, key): ([u64; 4], [u64; 4]) = ([2, 3, 5, 4], [2, 3, 7, 4]);
        let two = 2 * 2 * (2 * 3 * 5 * 7 * 4);
        let (q, k) = (4 * 120, 4 * 168);
        let forward = [&query[..], &key, &key];
        check("aten::_scaled_dot_product_flash_attention", &forward, q, two, 2 * (q + k));
        let backward = [&query[..], &query, &key, &key];
        let name = "aten::_scaled_dot_product_efficient_attention_backward";
        check(name, &backward, 0, two / 2 * 5, 2 * (q + k));
        let (query, key): ([u64; 4], [u64; 4]) = ([2, 5, 3, 4], [2, 7, 3, 4]);
        check("aten::_flash_attention_forward", &[&query, &key, &key], q, two, 2 * (q + k));
        // Anything else moves its bytes.
        check("aten::add", &[&[10], &[10]], 40, 0, 120);
        check("my::op", &[], 40, 0, 40);
    }

    #[test]
    fn indices_do_not_decide_the_precision_and_missing_arguments_are_no_work() {
        let index = Tensor { extents: &[3], precision: Precision::Other(8) };
        let value = Tensor { extents: &[3, 2], precision: Precision::Float16 };
        let work = Work::of_operator("aten::embedding", &[index, value], Bytes(12));
        assert_eq!((work.precision, work.bytes), (Precision::Float16, Bytes(24 + 12 + 12)));
        assert_eq!(Work::of_operator("aten::mm", &[value], Bytes(8)).flops, 0);
        let small = Tensor { extents: &[16, 16], precision: Precision::Other(1) };
        let work = Work::of_operator("aten::_scaled_mm", &[small, small], Bytes(512));
        assert_eq!((work.flops, work.precision), (8192, Precision::BFloat16));
        let huge = Tensor { extents: &[u64::MAX, 2], precision: Precision::Float32 };
        assert_eq!(Work::of_operator("aten::mm", &[huge, huge], Bytes(8)).flops, u64::MAX);
    }

    #[test]
    fn views_start_no_kernel() {
        for name in ["aten::view", "aten::t", "aten::_reshape_alias", "aten::unsqueeze"] {
            assert!(starts_no_kernel(name), "{name}");
        }
        for name in ["aten::add", "aten::clone", "aten::zero_", "aten::copy_", "nccl:all_reduce"] {
            assert!(!starts_no_kernel(name), "{name}");
        }
    }
}
