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
        NotSlurm { program: String } => Usage,
        #[error("cannot run `{program}`")]
        #[diagnostic(help(
            "the job was checked, and not submitted: check that the command is installed"
        ))]
        Execute { program: String, source: std::io::Error } => Usage,
    }
}
