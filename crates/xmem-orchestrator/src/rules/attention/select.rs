//! The kernel that CUDA takes.

use crate::frame::count::Count;
use crate::target::Target;
use xmem_analyzer::{Arguments, DType, TensorArg};
use xmem_types::TorchVersion;

/// A call's arguments: `(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)`.
#[derive(Clone, Debug)]
pub(super) struct AttentionCall {
    pub(super) query: TensorArg,
    pub(super) key: TensorArg,
    pub(super) value: TensorArg,
    pub(super) mask: Option<TensorArg>,
    /// `is_causal`: the kernel makes a triangular mask.
    pub(super) causal: bool,
    /// `dropout_p` above 0.
    pub(super) dropout: bool,
}

impl AttentionCall {
    /// Reads the recorded arguments; `None` unless query, key and value are 4-dimensional.
    pub(super) fn read(arguments: &Arguments) -> Option<Self> {
        let tensor = |i| arguments.tensor(i).filter(|t: &&TensorArg| t.dims.len() == 4).cloned();
        Some(Self {
            query: tensor(0)?,
            key: tensor(1)?,
            value: tensor(2)?,
            mask: arguments.tensor(3).cloned(),
            causal: arguments.value(5) == Some("True"),
            dropout: arguments.value(4).and_then(|p| p.parse().ok()).is_some_and(|p: f64| p > 0.0),
        })
    }

    pub(super) fn batch(&self) -> u64 {
        self.query.dims[0]
    }

    pub(super) fn heads(&self) -> u64 {
        self.query.dims[1]
    }

    pub(super) fn length(&self) -> u64 {
        self.query.dims[2]
    }

    pub(super) fn width(&self) -> u64 {
        self.query.dims[3]
    }

    /// The widest of query, key and value.
    pub(super) fn widest(&self) -> u64 {
        self.width().max(self.value.dims[3])
    }

    /// Grouped queries: fewer key than query heads.
    pub(super) fn grouped(&self) -> bool {
        self.key.dims[1] != self.heads()
    }

    /// Returns whether the inputs lie sequence first in memory (`[L, B, H, D]`, as
    /// torch.nn.MultiheadAttention makes them). CUDA's memory-efficient kernel writes batch first
    /// in any case, so that copies are needed on the way out and back in.
    pub(super) fn sequence_first(&self) -> bool {
        match *self.query.strides.as_slice() {
            [batch, _, length, _] => self.batch() > 1 && batch < length,
            _ => false,
        }
    }

    /// Returns whether the query's heads are further apart in memory than its positions (`[B, H, L, D]`).
    pub(super) fn heads_first(&self) -> bool {
        match *self.query.strides.as_slice() {
            [_, head, length, _] => self.heads() > 1 && self.length() > 1 && head > length,
            _ => false,
        }
    }

    /// Rows of the output: one for each batch entry, head and position.
    pub(super) fn rows(&self) -> Count {
        Count(self.batch()) * self.heads() * self.length()
    }

    /// Number of scores.
    pub(super) fn scores(&self) -> Count {
        self.rows() * self.key.dims[2]
    }

    /// Bytes of the score matrix, and of a gradient of the mask before it is summed.
    pub(super) fn score_bytes(&self) -> Count {
        self.scores().of(self.query.dtype)
    }

    /// Number of elements of the output.
    pub(super) fn output_elements(&self) -> Count {
        self.rows() * self.value.dims[3]
    }

    /// Bytes of the output.
    pub(super) fn output_bytes(&self) -> Count {
        self.output_elements().of(self.query.dtype)
    }

    /// Bytes of a key or value with as many heads as the query.
    pub(super) fn for_all_heads(&self, tensor: &TensorArg) -> Count {
        Count::bytes(tensor) / tensor.dims[1] * self.heads()
    }
}

/// The implementations that `select_sdp_backend` chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    Flash,
    Efficient,
    Cudnn,
    Math,
}

/// aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, `select_sdp_backend`: the first of the
/// priority order whose constraints hold.
pub(super) fn backend(call: &AttentionCall, target: &Target) -> Backend {
    let capability = target.device.compute_capability;
    let half = call.query.dtype.is_half();
    let widths = [call.query.dims[3], call.key.dims[3], call.value.dims[3]];
    // cuDNN stands first on Hopper and Blackwell since 2.9 (with cuDNN above 9.15), and did in
    // 2.5.0 alone before.
    let widest = if capability.major == 9 { 256 } else { 128 };
    let cudnn_first = target.torch >= TorchVersion::new(2, 9);
    let allowed = target.attention;
    if cudnn_first
        && allowed.cudnn
        && half
        && matches!(capability.major, 9 | 10)
        && widths.iter().all(|w| w % 8 == 0 && *w <= widest)
    {
        return Backend::Cudnn;
    }
    let flash = allowed.flash
        && half
        && capability.major >= 8
        && call.mask.is_none()
        && widths.iter().all(|w| *w == widths[0] && *w <= 256);
    if flash {
        return Backend::Flash;
    }
    let alignment = match call.query.dtype {
        DType::F16 | DType::BF16 => 8,
        _ if capability.major >= 8 => 4,
        _ => 1,
    };
    // Recorded: grouped queries from 2.14 on.
    let grouping = target.torch >= TorchVersion::new(2, 14) || !call.grouped();
    let efficient = allowed.efficient
        && grouping
        && matches!(call.query.dtype, DType::F32 | DType::F16 | DType::BF16)
        && (call.query.dtype != DType::BF16 || capability.major >= 8)
        && widths.iter().all(|w| w % alignment == 0);
    if efficient { Backend::Efficient } else { Backend::Math }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_devices::find;

    fn tensor(dims: &[u64], dtype: DType) -> TensorArg {
        TensorArg { dims: dims.to_vec(), strides: Vec::new(), dtype }
    }

    fn choice(device: &str, dtype: DType, kv_heads: u64, mask: bool) -> Backend {
        let kv = tensor(&[4, kv_heads, 64, 32], dtype);
        let call = AttentionCall {
            query: tensor(&[4, 8, 64, 32], dtype),
            key: kv.clone(),
            value: kv,
            mask: mask.then(|| tensor(&[4, 1, 64, 64], dtype)),
            causal: false,
            dropout: false,
        };
        backend(&call, &Target::new(find(device).expect("known").clone()))
    }

    /// Recorded with PyTorch 2.13's and 2.14's CUDA builds, kernels stubbed.
    #[test]
    fn grouped_queries_take_the_efficient_kernel_since_2_14() {
        let (query, key) =
            (tensor(&[2, 8, 128, 32], DType::F32), tensor(&[2, 2, 128, 32], DType::F32));
        let call = AttentionCall {
            query,
            value: key.clone(),
            key,
            mask: None,
            causal: true,
            dropout: false,
        };
        for (minor, expected) in [(13, Backend::Math), (14, Backend::Efficient)] {
            let mut target = Target::new(find("rtx3060-12g").expect("known").clone());
            target.torch = TorchVersion::new(2, minor);
            assert_eq!(backend(&call, &target), expected, "2.{minor}");
        }
    }

    /// Kernels that a program switches off are passed over (`torch.backends.cuda.enable_flash_sdp(False)`).
    #[test]
    fn kernels_that_are_off_are_not_taken() {
        let half = tensor(&[4, 8, 64, 32], DType::BF16);
        let call = AttentionCall {
            query: half.clone(),
            value: half.clone(),
            key: half,
            mask: None,
            causal: false,
            dropout: false,
        };
        let mut target = Target::new(find("h100-80g").expect("known").clone());
        for next in [Backend::Cudnn, Backend::Flash, Backend::Efficient, Backend::Math] {
            assert_eq!(backend(&call, &target), next);
            match next {
                Backend::Cudnn => target.attention.cudnn = false,
                Backend::Flash => target.attention.flash = false,
                Backend::Efficient | Backend::Math => target.attention.efficient = false,
            }
        }
    }

    /// Recorded with PyTorch 2.11's CUDA build, kernels stubbed.
    #[test]
    fn choice_follows_type_mask_grouping_and_architecture() {
        for (device, dtype, kv_heads, mask, expected) in [
            ("rtx3060-12g", DType::F32, 8, false, Backend::Efficient),
            ("rtx3060-12g", DType::F32, 8, true, Backend::Efficient),
            ("rtx3060-12g", DType::F32, 2, false, Backend::Math),
            ("rtx3060-12g", DType::BF16, 8, false, Backend::Flash),
            ("rtx3060-12g", DType::BF16, 8, true, Backend::Efficient),
            ("rtx3060-12g", DType::BF16, 2, false, Backend::Flash),
            ("rtx3060-12g", DType::BF16, 2, true, Backend::Math),
            ("h100-80g", DType::BF16, 8, true, Backend::Cudnn),
            ("h100-80g", DType::F32, 8, false, Backend::Efficient),
            ("t4-16g", DType::BF16, 8, false, Backend::Math),
        ] {
            assert_eq!(
                choice(device, dtype, kv_heads, mask),
                expected,
                "{device} {dtype:?} {kv_heads} {mask}"
            );
        }
    }
}
