//! The lowering of a recorded job to the requests that it makes of a GPU's allocator.
//!
//! `rules` has a file for each rule, `frame` what rules see and edit, `passes` their order, `what_ifs` the changes that a user
//! asks for, and `recorded` the jobs that were recorded on a GPU, for which no rule applies.
//!
//! The program order of a training loop is the same on both devices, and so are Python's reference
//! counts: what *escapes* an operator (its outputs, its saved tensors) and the point at which it is freed
//! carry over. What differs is inside the leaf operators and around them; the rules of this crate
//! replace it. This crate knows the requests of CUDA kernels. It knows nothing of JSON or segments.
//!
//! Lowering is a pure function of the profile, the target and the answers about convolutions:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let bytes = std::fs::read("trace.json")?;
//! # let options = xmem_trace::ReadOptions::default();
//! # let (profile, _) = xmem_analyzer::analyze(xmem_trace::read_bytes(&bytes, &options)?.0);
//! use xmem_convolutions::{ConvolutionSource as _, FittedModel};
//! use xmem_orchestrator::{Target, convolution_questions, schedule};
//!
//! let target = Target::new(xmem_devices::find("a100-40g")?.clone());
//! let questions = convolution_questions(&profile, &target);
//! let answers = FittedModel.answer(&target.device, &questions);
//! let (schedule, notes) = schedule(&profile, &target, &answers);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod block_size;
mod bounds;
mod change;
mod completion;
pub mod coverage;
mod frame;
mod iterations;
mod passes;
mod recorded;
mod resharding;
mod rule;
mod rules;
mod schedule;
mod target;
#[cfg(test)]
mod testing;
mod uncertainty;
mod unmodeled;
mod walk;
mod what_ifs;

pub use change::{ChosenWhatIf, WhatIfError};
pub use completion::{
    CompletionError, CompletionModel, StreamCompletion, check_completion, collective_of,
    depends_on_completion,
};
pub use iterations::{Owner, RecordedIterations, align};
pub use resharding::{Resharding, ReshardingError};
pub use rule::{Rule, RuleEffect};
pub use rules::cublas_workspace::parse_cublas_workspace_config;
pub use rules::rules;
pub use schedule::{BlockPlace, LeftOut, Origin, Schedule, ScheduledBlock, WithoutWorkspace};
pub use target::{
    AttentionKernels, CudnnBenchmark, OptimizerImpl, Target, ZeroGradPlace, requested_optimizer,
};
pub use uncertainty::{
    Bound, SizeRange, UnaskedConvolution, UncertainBlock, UncertainPlace, Uncertainty,
    WorkspaceFamily,
};
pub use what_ifs::{ParseWhatIfError, Values, WHAT_IFS, WhatIf};
pub use xmem_convolutions::ConvPass;

use frame::context::Context;
use frame::draft::Draft;
use xmem_analyzer::Profile;
use xmem_convolutions::{ConvolutionAnswers, ConvolutionQuestion};
use xmem_types::Diagnostics;

/// The convolutions of the job whose plans the lowering wants to know, each once. For a job that was recorded on a GPU,
/// only if the target has less memory than it reserved.
#[must_use]
pub fn convolution_questions(profile: &Profile, target: &Target) -> Vec<ConvolutionQuestion> {
    if profile.gpu.as_ref().is_some_and(|gpu| !recorded::is_short(gpu, target)) {
        return Vec::new();
    }
    rules::cudnn_convolution::questions(profile, target)
}

/// Lowers a profile to the allocator requests that the same job makes on `target`. Those of a job that was
/// recorded on a GPU are its own.
///
/// `convolutions` are the answers to [`convolution_questions`]; a convolution without an answer is
/// assumed to need no workspace, and a diagnostic says so.
#[must_use]
pub fn schedule(
    profile: &Profile,
    target: &Target,
    convolutions: &ConvolutionAnswers,
) -> (Schedule, Diagnostics) {
    let (mut schedule, notes) = match &profile.gpu {
        Some(gpu) => recorded::schedule(profile, gpu, target, convolutions),
        None => lowered(profile, target, convolutions),
    };
    for what_if in &target.what_ifs {
        what_if.change_schedule(profile, target, &mut schedule);
    }
    (schedule, notes)
}

/// The requests of a job that was recorded on a CPU.
fn lowered(
    profile: &Profile,
    target: &Target,
    convolutions: &ConvolutionAnswers,
) -> (Schedule, Diagnostics) {
    let mut notes = Diagnostics::default();
    let (mut draft, cx) = xmem_parallel::both(
        || Draft::new(profile, rules()),
        || Context::new(profile, target, convolutions),
    );
    passes::run(&mut draft, &cx, &mut notes);
    let schedule = passes::first_iteration::add(draft.finish(), profile);
    (Schedule { starts_late: !profile.preexisting.is_empty(), ..schedule }, notes)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
