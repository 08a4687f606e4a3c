//! Where autocast's operator lists differ between the CPU and CUDA
//! (aten/src/ATen/autocast_mode.cpp).

mod loss;
mod wide;

pub(crate) use loss::cross_entropy;
pub(crate) use wide::widen;
