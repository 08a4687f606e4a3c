//! The decision whether a job may start: what it asks for, what the site has, and what it needs.
//!
//! [`Site`] is the table of a cluster's GPUs with its rules, [`JobRequest`] what a job asks of it. Together
//! they give the devices on which the job may run. [`check`] replays the job there, and gives an
//! [`Outcome`]: a [`Decision`], the memory it needs, and the changes that were replayed and help.
//! [`kubernetes`] does the same for the pods of a manifest, from bytes that were predicted before;
//! [`Manifest`] reads and annotates its text. [`Baseline`] compares outcomes with those of an earlier commit.
//!
//! The crate touches no file and no environment: text and values in, values out.
#![forbid(unsafe_code)]

mod advice;
mod baseline;
mod check;
mod decision;
mod known;
pub mod kubernetes;
mod manifest;
mod margin;
mod request;
mod site;
mod skypilot;
mod slurm;
mod suggestion;
mod template_path;

pub use advice::{Advice, Change};
pub use baseline::{Baseline, BaselineEntry, BaselineError, Growth, ModuleGrowth, RoleGrowth};
pub use check::{Outcome, Question, check};
pub use decision::{Action, Policy};
pub use known::{KnownNeed, KnownOutcome};
pub use manifest::{AnnotationPlace, Manifest, ManifestError};
pub use margin::{Margin, ParseMarginError};
pub use request::{GpuRequest, JobRequest, ParseRequestError};
pub use site::{Candidates, Rules, Site, SiteError, SiteGpu, Unresolved, Workload};
pub use skypilot::{Accelerator, accelerators};
pub use slurm::{Directives, LawValue, SlurmCommand, SlurmError, SlurmOptions};
pub use suggestion::with_suggestion;
pub use template_path::{PathStep, TemplatePath};
pub use xmem::{Decision, TightBy};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
