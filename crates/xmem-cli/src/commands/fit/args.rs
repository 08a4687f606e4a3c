//! Arguments of `xmem fit`.

use crate::choice::{choice, choices};
use crate::commands::profile::assumptions;
use crate::device;
use crate::measures::{self, list_of_changes};
use crate::values::{Offered, count, duration};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;
use xmem_recorder::{Assumptions, Changes, OverlayChoice};
use xmem_studies::fit::Range;

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] =
    &["command", "device", "set", "range", "allow", "measures", "budget", "format", "output"];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "The command is recorded on a virtual GPU (PyTorch's CUDA build, nothing is computed, no GPU is needed),\n\
        changed, and recorded again: every figure is that of a recording. {batch=8} in the command stands for a\n\
        number, with 8 in the job as it is; the largest one that fits is found. Measures are applied to the\n\
        running script; its files stay as they are.\n\n\
        Examples:\n  \
        xmem fit -d rtx4090-24g -- python train.py\n  \
        xmem fit -d rtx4090-24g -- python train.py --batch-size {batch=8}\n  \
        xmem fit -d t4-16g --set dataloader.batch_size={batch=8} -- python train.py\n  \
        xmem fit -d a100-40g --ranks {gpus=2} -- torchrun --nproc-per-node {gpus} train.py\n  \
        xmem fit -d rtx4090-24g --report fit.html -- python train.py --batch-size {batch=8}\n  \
        xmem fit -d t4-16g --allow rounding --range seq=128..8192 -- python train.py --seq-len {seq=512}\n\n\
        Exit code: 0 the job fits as it is, 1 it does not (whatever is suggested), 2 usage error, 3 it could not\n\
        be recorded, 4 its recording is incomplete."
)]
pub(crate) struct FitArgs {
    /// Training command with its arguments; {NAME=VALUE} in one of them is a number that may be changed
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// GPU on which the job is to fit; `xmem devices` lists the names. Repeatable: one answer for each
    #[arg(short, long, value_name = "NAME", required = true,
          value_parser = Offered::new(device::offered), hide_possible_values = true)]
    pub(crate) device: Vec<String>,
    /// Vary the batch size of the script's DataLoaders, for a script without an option for it: {NAME=VALUE} is the number
    #[arg(long, value_name = "dataloader.batch_size={NAME=VALUE}")]
    pub(crate) set: Option<String>,
    /// Number of processes of a distributed job, of which rank 0 is recorded; {NAME=VALUE} in place of a number, which the
    /// command may have as well, finds the fewest with which the job fits, by doubling and halving
    #[arg(long, value_name = "N")]
    pub(crate) ranks: Option<String>,
    /// Machines over which --ranks are spread
    #[arg(long, value_name = "M", requires = "ranks", default_value = "1", value_parser = count::<NonZeroU32>)]
    pub(crate) nodes: NonZeroU32,
    /// Values of the number in the command, for example batch=1..512; without it, 1 to 4096
    #[arg(long, value_name = "NAME=LOW..HIGH", value_parser = named_range)]
    pub(crate) range: Option<NamedRange>,
    /// What measures may change in the numbers that the job computes: nothing; the rounding (order of additions, precision
    /// of intermediate results); or the training itself. Each includes those before it
    #[arg(long, value_name = "WHAT", value_parser = choice::<Changes>(), default_value = Changes::Nothing.name())]
    pub(crate) allow: Changes,
    /// Measures to try, in place of all that --allow allows: a list such as checkpointing=2,fused; none tries nothing
    #[arg(long, value_name = "LIST", value_parser = list_of_changes(), hide_possible_values = true)]
    pub(crate) measures: Option<measures::Changes>,
    /// Try measures although the job fits as it is
    #[arg(long)]
    pub(crate) all: bool,
    /// Make no further recordings after this time, and answer with what is known
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub(crate) budget: Duration,
    /// Recordings that are made side by side [default: 2, or 1 where memory is short]
    #[arg(long, value_name = "N", value_parser = count::<NonZeroUsize>)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Number of iterations to record in full
    #[arg(long, value_name = "N", value_parser = count::<NonZeroU32>, default_value = "3")]
    pub(crate) steps: NonZeroU32,
    /// How long the script runs after them, to see whether it needs more later (evaluation, saving, longer samples);
    /// if it does, all recordings run for as long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub(crate) time: Duration,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: FitFormat,
    /// Write the answer to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Keep the recordings in this folder, for xmem replay, look and report
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) keep: Option<PathBuf>,
    /// Write a Python file that applies what is suggested to a script, on any GPU and without xmem
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) write: Option<PathBuf>,
    /// Write what the job needs with each value of the number to this file, for xmem check FILE --at NAME=VALUE; values
    /// from the least to the greatest of --range, or to the first that does not fit
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) law: Option<PathBuf>,
    /// Write the page of xmem report about the job as it is to this file, with a view of what was found: measures by memory and
    /// time, and what each value of the number needs. With several devices, it is about the first
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Let the script write to this file or folder, or to `all`; else its writes are kept out of your files
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) let_write: Vec<PathBuf>,
    /// How writes are kept out of your files: by a mount namespace, or by a library that is preloaded
    #[arg(long, value_name = "HOW", value_parser = choice::<OverlayChoice>(), default_value = "auto")]
    pub(crate) overlay: OverlayChoice,
    /// Load zeros for weights that are not on this machine
    #[arg(long)]
    pub(crate) without_weights: bool,
    /// Values that a virtual GPU does not compute and that decide sizes, as in xmem profile
    #[arg(long, value_name = "NAME=SHARE", value_parser = assumptions)]
    pub(crate) assume: Option<Assumptions>,
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitFormat {
    /// Text.
    Text,
    /// JSON, schema xmem.fit/1.
    Json,
}

/// `--range`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRange {
    pub(crate) name: String,
    pub(crate) range: Range,
}

fn named_range(text: &str) -> Result<NamedRange, String> {
    let expected = || "expected a name and a range, for example batch=1..512".to_owned();
    let (name, range) = text.split_once('=').ok_or_else(expected)?;
    let (low, high) = range.split_once("..").ok_or_else(expected)?;
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    let (low, high) = number(low).zip(number(high)).ok_or_else(expected)?;
    if low > high {
        return Err("the range ends before it begins".to_owned());
    }
    Ok(NamedRange { name: name.trim().to_owned(), range: Range { low, high } })
}

choices! {
    Changes {
        Nothing => PossibleValue::new(Changes::Nothing.name()),
        Rounding => PossibleValue::new(Changes::Rounding.name()),
        Training => PossibleValue::new(Changes::Training.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_a_name_and_two_ends() {
        let range = named_range("batch=1..512").expect("a range");
        assert_eq!((range.name.as_str(), range.range), ("batch", Range { low: 1, high: 512 }));
        for text in ["batch", "batch=8", "batch=0..8", "batch=9..8", "batch=1..x", "1..8"] {
            named_range(text).expect_err(text);
        }
    }
}
