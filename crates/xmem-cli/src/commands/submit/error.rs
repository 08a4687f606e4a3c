//! Jobs that cannot be submitted.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;

failures! {
    /// A job that cannot be submitted.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum SubmitFailure {
        #[error("`{program}` does not submit jobs to Slurm")]
        #[diagnostic(help(
            "give the whole command behind `--`: xmem submit -- sbatch --gres=gpu:a100:1 train.sh"
        ))]
        NotSlurm { program: String } => Usage XM0821 {
            title: "command that does not submit to Slurm",
            cause: "`xmem submit` takes a command of sbatch, srun or salloc.",
            example: "xmem submit -- python train.py",
            fix: "Give the whole command behind `--`: `xmem submit -- sbatch --gres=gpu:a100:1 train.sh`.",
        },
        #[error("cannot run `{program}`")]
        #[diagnostic(help(
            "the job was checked, and not submitted: check that the command is installed"
        ))]
        Execute { program: String, source: std::io::Error } => Usage XM0822 {
            title: "command of Slurm that cannot be run",
            cause: "The job was checked, but the command that submits it is not installed or not executable.",
            example: "xmem submit -- sbatch train.sh",
            fix: "Run it on a machine with Slurm's commands; `command -v sbatch` shows the path.",
        },
    }
}
