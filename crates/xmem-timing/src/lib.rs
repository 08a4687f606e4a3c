//! Durations of operators, collectives and transfers on a device: a roofline.
//!
//! A model and not a measurement: every figure follows from the peaks of the device's data sheet, from the shares of
//! them that programs reach, and from constant latencies. All of these are public fields of [`TimeModel`], to be
//! printed with every result (`Display`, a parameter a line) and overridden.
//!
//! ```
//! use xmem_devices::find;
//! use xmem_timing::{Collective, Group, Precision, Tensor, TimeModel, Work};
//! use xmem_types::{Bytes, Nanos};
//!
//! let mut model = TimeModel::of(find("a100-40g").expect("built in"));
//! model.measure("op,duration_us\naten::gelu,12.5\n").expect("a table");
//!
//! // An operator, from what a trace says about it: its tensor arguments in order, and the bytes that it wrote.
//! let half = |extents| Tensor { extents, precision: Precision::BFloat16 };
//! let (a, b) = ([4096, 1024], [1024, 4096]);
//! let work = Work::of_operator("aten::mm", &[half(&a), half(&b)], Bytes::mib(32));
//! assert_eq!(work.flops, 2 * 4096 * 1024 * 4096);
//! let duration = model.operator_duration("aten::mm", &work);
//!
//! // A transfer between host and device, and a collective of 8 GPUs of one machine (all bytes, not the rank's part).
//! let copied = model.transfer_duration(Bytes::mib(256));
//! let group = Group { ranks: 8, ranks_of_a_machine: 8 };
//! let gathered = model.collective_duration(Collective::AllGather, Bytes::mib(64), group);
//! assert!(duration > Nanos(5_000) && copied > gathered);
//! ```
//!
//! **Which operators to ask about.** Operators of a trace are nested. Go from the outermost inwards: one for which
//! [`has_formula`] holds counts with everything inside it; of any other that has operators inside, ask about those;
//! an innermost one moves its bytes. Views and other calls that start no kernel ([`starts_no_kernel`]) take no time.
//!
//! What the model leaves out: caches, tiles that do not fill a device, kernels that run side by side, and clocks
//! below the boost clock. Work on a stream takes the sum of its operators' durations.
#![forbid(unsafe_code)]

mod collective;
mod measured;
mod model;
mod operator;

pub use collective::{Collective, Group};
pub use measured::MeasuredTableError;
pub use model::{FlopRate, Peaks, TimeModel};
pub use operator::{Precision, Tensor, Work, has_formula, starts_no_kernel};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
