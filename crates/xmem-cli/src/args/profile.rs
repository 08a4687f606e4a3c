//! `xmem profile`.

use clap::{ArgAction, Args, ValueHint};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use xmem::Bytes;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "The script needs no change and no GPU: its CUDA calls are redirected to the CPU, a few iterations\n\
        are recorded with PyTorch's profiler (2.0 or newer), and the script is ended. It runs as it\n\
        would without xmem, in its own Python, with its own standard input and output.\n\n\
        Examples:\n  \
        xmem profile -- python train.py --batch-size 32\n  \
        xmem profile --then 'replay --device rtx3060-12g' -- python train.py\n  \
        xmem profile --steps 5 -o runs/bert.json.zst -- torchrun --nproc-per-node 1 train.py\n  \
        xmem profile --timeout 30m --max-memory 24GiB -- bash train.sh\n\n\
        Exit code: 0 recorded, 2 wrong usage, 3 nothing could be saved, 4 saved, but cut short; with\n\
        --then, that command's once the recording is complete."
)]
pub(crate) struct ProfileArgs {
    /// The command that trains, with its arguments
    #[arg(required = true, last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// Iterations to record; the script is ended after them
    #[arg(long, value_name = "N", default_value = "3")]
    pub(crate) steps: NonZeroU32,
    /// Where the trace goes: compressed with zstd or gzip if it ends in .zst or .gz, else plain JSON
    #[arg(short, long, value_name = "FILE", default_value = "trace.json.zst",
          value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// What to do with the trace: a replay, inspect or validate command without its trace
    #[arg(long, value_name = "COMMAND")]
    pub(crate) then: Option<String>,
    /// Record Python's stacks, which name modules and lines (the default)
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "no_stacks")]
    stacks: bool,
    /// Do not: the recording is faster and smaller
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "stacks")]
    pub(crate) no_stacks: bool,
    /// Stop after this time, like 90s, 30m or 2h, and save what there is (default: never)
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
    /// Stop when the command has this much memory, and save what there is (default: when the host
    /// runs out of it)
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) max_memory: Option<Bytes>,
    /// The GPU that the script is told of, where it asks; `xmem devices` lists them
    #[arg(long, value_name = "NAME", default_value = "a100-40g")]
    pub(crate) device_as: String,
}

fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err("no time at all".to_owned()),
        Err(_) => Err("write a number and a unit, like 90s, 30m or 2h".to_owned()),
    }
}
