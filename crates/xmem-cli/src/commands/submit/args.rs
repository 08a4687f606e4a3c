//! Arguments of `xmem submit`.

use crate::config::SettingsArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  xmem submit -- sbatch --gres=gpu:a100:1 train.sh\n  \
        xmem submit --trace runs/trace.json.zst -- srun --gpus=1 python train.py\n\n\
        The command runs as it is given, unless the job is rejected; then the exit code is 1. Traces: --trace,\n\
        else `#XMEM --trace FILE` in the job script, else XMEM_TRACE. A job that cannot be checked is let\n\
        through with a note, unless its partition fails closed."
)]
pub(crate) struct SubmitArgs {
    /// The trace of the job, one for each rank; repeatable
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    /// The command: sbatch, salloc or srun with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
