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
        Nothing => Usage XM0551 {
            title: "nothing to change",
            cause:
                "`xmem run` applies measures or a plan, or runs a virtual GPU, and no option asks for one of these.",
            example: "xmem run -- python train.py",
            fix:
                "Add `--with MEASURES` (`xmem fit -d t4-16g -- python train.py` finds them), `--plan auto` or \
                 `--virtual-gpu t4-16g`.",
        },
        #[error("--plan is not supported on this system: it needs Linux with glibc on x86-64 or aarch64")]
        NoPlans => Usage XM0552 {
            title: "plans unsupported on this system",
            cause: "Allocators that follow a plan need Linux with glibc on x86-64 or aarch64.",
            example: "xmem run --plan auto -- python train.py",
            fix: "Run the job on such a system, or use measures: `xmem run --with MEASURES -- python train.py`.",
        },
        #[error("cannot prepare the folder of the plan")]
        PlanFolder { source: std::io::Error } => Unreadable XM0553 {
            title: "no folder for the plan",
            cause: "The folder for the files of the plan cannot be created or written.",
            example: "TMPDIR=/missing xmem run --plan auto -- python train.py",
            fix:
                "Set TMPDIR to a folder that you can write to: `TMPDIR=/var/tmp xmem run --plan auto -- python \
                 train.py`.",
        },
        #[error("the job cannot be recorded for a plan: {reason}")]
        #[diagnostic(help(
            "`xmem profile -- COMMAND` says more; a recording that is made there can be given as --plan FILE"
        ))]
        NotRecorded { reason: String } => Unreadable XM0554 {
            title: "job that cannot be recorded for a plan",
            cause: "`--plan auto` records the job first, and the recording failed or is incomplete.",
            example: "xmem run --plan auto -- python broken.py",
            fix:
                "Run `xmem profile -- COMMAND` to see the reason, then give the recording: `xmem run --plan \
                 trace.json.zst -- COMMAND`.",
        },
        #[error("{input} is neither a plan nor a recording of a job")]
        #[diagnostic(help(
            "`xmem plan RECORDING --export-hints FILE` writes a plan; `xmem profile -- COMMAND` makes a recording"
        ))]
        NotAPlan { input: String } => Unreadable XM0555 {
            title: "file without a plan",
            cause: "The file of `--plan` is neither a plan nor a recording.",
            example: "xmem run --plan notes.txt -- python train.py",
            fix:
                "Write a plan with `xmem plan RECORDING --export-hints plan.json`, or record with `xmem profile -- \
                 COMMAND`.",
        },
        #[error("{input} is a plan for the memory of {memory}")]
        #[diagnostic(help("with --cpu, a command follows a plan for the CPU, and without it one for a GPU"))]
        OtherMemory { input: String, memory: &'static str } => Usage XM0556 {
            title: "plan for other memory",
            cause: "The plan is for the memory of the CPU, and the command runs on a GPU, or the reverse.",
            example: "xmem run --cpu --plan gpu-plan.json -- python train.py",
            fix:
                "Add or remove `--cpu`, or write a plan for this memory with `xmem plan RECORDING --export-hints \
                 plan.json`.",
        },
    }
}
