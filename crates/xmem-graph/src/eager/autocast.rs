//! Autocast on the CPU: which operators run in a narrower type, which in 32 bits, and the casts in between
//! (aten/src/ATen/autocast_mode.cpp, autocast_mode.h).

use super::tensor::Tensor;
use super::{Eager, Former};
use crate::dtype::DType;

/// An active `torch.autocast`.
#[derive(Debug)]
pub(crate) struct Autocast {
    /// The narrower type.
    pub(crate) dtype: DType,
    /// Weights with their casts, kept until the context is left. In order of use: by address, frees would differ from
    /// run to run.
    cache: Vec<(Tensor, Tensor)>,
}

/// The type that an operator runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The narrower type of the context.
    Narrow,
    /// 32 bits.
    Wide,
    /// The widest of its arguments.
    Widest,
    /// As it is.
    Unchanged,
}

impl Autocast {
    pub(crate) fn new(dtype: DType) -> Self {
        Self { dtype, cache: Vec::new() }
    }
}

/// The policy for an operator (autocast_mode.cpp, `TORCH_LIBRARY_IMPL(aten, AutocastCPU, m)`).
pub(crate) fn policy(operator: &str) -> Policy {
    match operator {
        "conv1d"
        | "conv2d"
        | "conv3d"
        | "conv_transpose1d"
        | "conv_transpose2d"
        | "conv_transpose3d"
        | "bmm"
        | "mm"
        | "baddbmm"
        | "addmm"
        | "addbmm"
        | "linear"
        | "matmul"
        | "conv_tbc"
        | "scaled_dot_product_attention" => Policy::Narrow,
        "avg_pool3d"
        | "binary_cross_entropy"
        | "grid_sampler"
        | "prod"
        | "cdist"
        | "mse_loss"
        | "nll_loss"
        | "nll_loss_nd"
        | "cross_entropy_loss"
        | "smooth_l1_loss"
        | "l1_loss"
        | "huber_loss"
        | "kl_div"
        | "trace"
        | "quantile"
        | "cosine_embedding_loss"
        | "ctc_loss"
        | "fft_fft"
        | "fft_rfft"
        | "stft" => Policy::Wide,
        "cat" | "stack" | "index_copy" => Policy::Widest,
        _ => Policy::Unchanged,
    }
}

impl Eager {
    /// Runs under autocast.
    pub(crate) fn autocast<R>(&self, dtype: Option<DType>, body: impl FnOnce() -> R) -> R {
        let former = self.enter_autocast(dtype);
        let result = body();
        self.leave(former);
        result
    }

    /// Begins `torch.autocast`, or turns it off.
    pub(crate) fn enter_autocast(&self, dtype: Option<DType>) -> Former {
        Former::Autocast(self.autocast.replace(dtype.map(Autocast::new)))
    }

    /// The narrower type, if autocast is on.
    pub(crate) fn autocast_dtype(&self) -> Option<DType> {
        self.autocast.borrow().as_ref().map(|a| a.dtype)
    }

    /// Suspends autocast, as dispatch below it does.
    pub(crate) fn past_autocast<R>(&self, body: impl FnOnce() -> R) -> R {
        let outer = self.autocast.take();
        let result = body();
        self.autocast.replace(outer);
        result
    }

    /// `cached_cast`: an argument in the type of the policy. Casts of 32-bit leaves are kept.
    pub(crate) fn cast(&self, tensor: &Tensor, to: DType) -> Tensor {
        let eligible = tensor.dtype().is_floating_point() && tensor.dtype() != DType::F64;
        if !eligible || tensor.dtype() == to {
            return tensor.clone();
        }
        let keeps = to != DType::F32
            && tensor.dtype() == DType::F32
            && tensor.is_leaf()
            && tensor.requires_grad();
        let known = |autocast: &Autocast| {
            let found =
                autocast.cache.iter().find(|(weight, _)| weight.identity() == tensor.identity());
            found.map(|(_, cast)| cast.clone())
        };
        if keeps && let Some(cast) = self.autocast.borrow().as_ref().and_then(known) {
            return cast;
        }
        let cast = self.to_dtype(tensor, to);
        if keeps && let Some(autocast) = &mut *self.autocast.borrow_mut() {
            autocast.cache.push((tensor.clone(), cast.clone()));
        }
        cast
    }
}
