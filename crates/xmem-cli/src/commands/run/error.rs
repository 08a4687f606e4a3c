//! Commands that are not run.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;

failures! {
    /// A command that is not run.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum RunFailure {
        #[error("no measure, plan or virtual GPU given: xmem would change nothing")]
        #[diagnostic(help(
            "--with MEASURES lowers its memory (xmem fit finds them), --plan auto follows a memory plan, and --virtual-gpu NAME runs it without a GPU"
        ))]
        Nothing => Usage,
        #[error("--plan is not supported on this system: it needs Linux with glibc on x86-64 or aarch64")]
        NoPlans => Usage,
        #[error("cannot prepare the folder of the plan")]
        PlanFolder { source: std::io::Error } => Unreadable,
        #[error("the job cannot be recorded for a plan: {reason}")]
        #[diagnostic(help(
            "`xmem profile -- COMMAND` says more; a recording that is made there can be given as --plan FILE"
        ))]
        NotRecorded { reason: String } => Unreadable,
        #[error("{input} is neither a plan nor a recording of a job")]
        #[diagnostic(help(
            "`xmem plan RECORDING --export-hints FILE` writes a plan; `xmem profile -- COMMAND` makes a recording"
        ))]
        NotAPlan { input: String } => Unreadable,
        #[error("{input} is a plan for the memory of {memory}")]
        #[diagnostic(help("with --cpu, a command follows a plan for the CPU, and without it one for a GPU"))]
        OtherMemory { input: String, memory: &'static str } => Usage,
    }
}
