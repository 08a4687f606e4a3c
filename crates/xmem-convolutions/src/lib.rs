//! The plans of convolutions as questions and answers, and a fitted model that answers without cuDNN.
//!
//! A lowering lists the convolutions of a job ([`ConvolutionQuestion`]); a [`ConvolutionSource`] answers
//! all of them for one device, as plain data ([`ConvolutionAnswers`]). The sources of this crate are the
//! [`FittedModel`], [`NoWorkspaces`] and answers given before; a cuDNN library is asked by `xmem-cudnn`.
//!
//! This crate knows no trace, no process and no file other than its embedded table.
#![forbid(unsafe_code)]

mod answers;
mod dispatch;
mod fitted;
mod kept;
mod plans;
mod plausibility;
mod question;
mod release;
mod replayed;
mod shape;
mod source;

pub use answers::ConvolutionAnswers;
pub use fitted::FittedModel;
pub use kept::{KeptAnswers, RecordedCudnn};
pub use plans::{Basis, Plans, Trial};
pub use plausibility::{Implausible, LibraryPlans};
pub use question::{ConvolutionQuestion, PlanChoice};
pub use release::CudnnRelease;
pub use shape::{ConvPass, ConvShape, ElementType, Layout, Volume};
pub use source::{ConvolutionSource, NoWorkspaces};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
