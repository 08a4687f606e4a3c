//! The decision about a job, in every form in which it is said: text, `xmem.check/1`, and those of other programs.
//!
//! [`CheckDocument`] holds all of it. It can be kept and read again, and every form is made of it.

pub(crate) mod baseline;
mod github;
mod json;
mod junit;
mod kept;
mod kubernetes;
mod markdown;
mod skypilot;
mod slurm;
mod text;
mod words;

pub use baseline::{baseline_json, read_baseline};
pub use github::github;
pub use json::{
    BeforeNow, CheckDocument, CheckPlace, CheckedDevice, Elsewhere, Fits, Grown, GrowthDocument,
    LowHigh, NamedBytes, Replayed,
};
pub use junit::junit;
pub use kubernetes::{dra, gpumem};
pub use markdown::markdown;
pub use skypilot::skypilot;
pub use slurm::{SlurmAnswer, slurm};
pub use text::{text, text_brief};
