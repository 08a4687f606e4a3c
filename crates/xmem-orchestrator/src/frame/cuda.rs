//! The scratch of CUDA's libraries and kernels, as plain functions of shapes and devices.

pub(crate) mod layout;
pub(crate) mod radix_sort;
pub(crate) mod reduce;
