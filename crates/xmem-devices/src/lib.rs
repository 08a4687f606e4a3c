//! Devices, and the schema that a user's own device file follows: data with a source for
//! every number, and the little code that finds an entry by name.
#![forbid(unsafe_code)]

mod board;
mod catalogue;
mod device;
mod name;
mod schema;
mod speed;

pub use board::{Board, Limits};
pub use catalogue::{DeviceNameError, cards, devices, find, find_all};
pub use device::{ComputeCapability, Device, ParseComputeCapabilityError, Sources, Tolerance};
pub use schema::DeviceFileError;
pub use speed::{Bandwidth, Speed, TensorCores, Throughput};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
