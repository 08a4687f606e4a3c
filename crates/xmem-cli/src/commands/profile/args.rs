//! Arguments of `xmem profile`.

use crate::choice::{choice, choices};
use crate::device;
use crate::measures::{Changes, list_of_changes};
use crate::values::{Offered, count, count_up_to, duration, share};
use clap::builder::PossibleValue;
use clap::{ArgAction, Args, ValueHint};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use xmem::Bytes;
use xmem::predict::VaryingDimension;
use xmem_recorder::{Assumptions, Capacity, Engine, OverlayChoice, VaryingBatches};

/// Iterations that are recorded in full.
const DEFAULT_STEPS: NonZeroU32 = NonZeroU32::new(3).expect("not zero");

/// The time that the script goes on after them.
const DEFAULT_TIME: Duration = Duration::from_secs(120);

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] = &[
    "command",
    "device",
    "steps",
    "time",
    "output",
    "then",
    "gpus",
    "ranks",
    "virtual_gpu",
    "vary",
];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "The script needs no change and no GPU. PyTorch's CUDA build runs as it is on a GPU that does not\n\
        exist: nothing is computed, and a model of any size is recorded in seconds (Linux on x86-64).\n\
        Where there is no such build, or values decide about sizes, CUDA calls are redirected to the CPU,\n\
        which computes. A few iterations are recorded with PyTorch's profiler (2.0 or newer), then what\n\
        follows, for a limited time. The script runs in its own Python, with its own standard input and\n\
        output, as it does without xmem; the files that it writes are kept out of yours.\n\n\
        Examples:\n  \
        xmem profile -d a100-40g -- python train.py\n  \
        xmem profile --virtual-gpu h100-80g -- python train.py\n  \
        xmem profile -- python train.py --batch-size 32\n  \
        xmem profile --then 'replay --device rtx3060-12g' -- python train.py\n  \
        xmem profile --steps 5 -o runs/bert.json.zst -- torchrun --nproc-per-node 1 train.py\n  \
        xmem profile --virtual-gpu h100-80g --ranks 64 --nodes 8 -- torchrun --nproc-per-node 8 train.py\n  \
        xmem profile --timeout 30m --max-memory 24GiB -- bash train.sh\n\n\
        Exit code: 0 recorded, 2 usage error, 3 nothing was saved, 4 saved but incomplete; with --then\n\
        or --device, the exit code of the command that follows if the recording is complete."
)]
pub(crate) struct ProfileArgs {
    /// Training command with its arguments: what follows its first word is the command's
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// Number of iterations to record in full; the script is stopped after them [default: 3, and what follows, see --time]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::<NonZeroU32>)]
    steps: Option<NonZeroU32>,
    /// How long the script continues after the iterations that are recorded in full: on a virtual GPU until its end, or for
    /// this time, where of steps that repeat one is recorded; on the CPU until it has evaluated and saved, if its source
    /// says that it does, with the first, larger and last batches of each pass over a DataLoader
    /// [default: 120s without --steps]
    #[arg(long, value_name = "TIME", value_parser = duration,
          conflicts_with_all = ["vary", "run_ahead", "assume"])]
    time: Option<Duration>,
    /// Give the batches of recorded iterations these lengths (seq) or sizes (batch) in turn, for replay
    /// --vary: the ends of a range and its middle (seq=64..128), or a list (seq=64,128). Tensors of the
    /// DataLoader, else the arguments of the model, are cut or repeated. Records at least two iterations more
    /// than lengths
    #[arg(long, value_name = "DIM=SIZES")]
    vary: Option<VaryingDimension>,
    /// Trace file to write: compressed with zstd or gzip if it ends in .zst or .gz, else plain JSON
    #[arg(short, long, value_name = "FILE", default_value = "trace.json.zst",
          value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Record for this GPU, and answer for it as `xmem replay --device NAME` does; `xmem devices` lists the names
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["device_as", "then"],
          value_parser = Offered::new(device::offered), hide_possible_values = true)]
    device: Option<String>,
    /// Command to run on the trace: replay, inspect or validate, without its TRACE argument
    #[arg(long, value_name = "COMMAND")]
    pub(crate) then: Option<String>,
    /// Record Python stacks, which give module names and source lines (default)
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "no_stacks")]
    stacks: bool,
    /// Do not record Python stacks (faster, smaller trace)
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "stacks")]
    pub(crate) no_stacks: bool,
    /// Let the script write to this file or folder, or to `all`. By default, what it writes or removes while it is
    /// recorded is kept in a private folder, and your files stay as they are; temporary folders are left as they are
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) let_write: Vec<PathBuf>,
    /// How writes are kept out of your files: by a mount namespace, or by a library that is preloaded; `auto` takes the
    /// namespace where it works
    #[arg(long, value_name = "HOW", value_parser = choice::<OverlayChoice>(), default_value = "auto")]
    pub(crate) overlay: OverlayChoice,
    /// Stop after this time, for example 90s, 30m or 2h, and save the iterations recorded so far
    /// (default: no limit)
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
    /// Stop when the command uses this much memory, and save the iterations recorded so far
    /// (default: when the host runs out of memory)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device, help_heading = "Limits")]
    pub(crate) max_memory: Option<Bytes>,
    /// GPU that torch.cuda reports to the script; `xmem devices` lists the names (default: that of --then, else
    /// a100-40g)
    #[arg(long, value_name = "NAME", value_parser = Offered::new(device::offered), hide_possible_values = true)]
    device_as: Option<String>,
    /// Number of GPUs that torch.cuda reports to the script. On the CPU, the answer is about one GPU with all
    /// tensors; on a virtual GPU, about the GPU with most memory
    #[arg(long, value_name = "N", default_value = "1", value_parser = count_up_to::<64>)]
    pub(crate) gpus: NonZeroU32,
    /// Number of processes of a distributed job (WORLD_SIZE), of which only those of --rank run, one after another.
    /// Launchers (torchrun, accelerate, deepspeed, torch.multiprocessing.spawn) start one process; its collectives
    /// complete immediately. On the CPU, memory of collectives is not quite that of a GPU: use a virtual GPU if
    /// PyTorch's CUDA build is installed
    #[arg(long, value_name = "N", conflicts_with = "gpus", value_parser = count::<NonZeroU32>, help_heading = "Ranks")]
    pub(crate) ranks: Option<NonZeroU32>,
    /// Ranks to record with --ranks: a list such as 0,7, all, or auto, which leaves out ranks between two that have
    /// the same peaks (virtual GPU). Of several, each gets a separate file (trace.rank7.json.zst)
    #[arg(long, value_name = "LIST", requires = "ranks", default_value = "0", value_parser = rank_choice, help_heading = "Ranks")]
    pub(crate) rank: RankChoice,
    /// Machines over which --ranks are spread; each has N/M GPUs
    #[arg(long, value_name = "M", requires = "ranks", default_value = "1", value_parser = count::<NonZeroU32>, help_heading = "Ranks")]
    pub(crate) nodes: NonZeroU32,
    /// Compute in float16 on the CPU where autocast asks for it, instead of bfloat16, which has the same size and is
    /// many times faster
    #[arg(long)]
    pub(crate) keep_float16: bool,
    /// What stands for the GPU: `cpu` computes on the CPU; `virtual-gpu` runs PyTorch's CUDA build without
    /// computing; `auto` takes the virtual GPU if available, else the CPU, and the CPU too where values decide about
    /// sizes
    #[arg(long, value_name = "ENGINE", value_parser = choice::<Engine>(), default_value = Engine::Auto.name(),
          help_heading = "Engine")]
    engine: Engine,
    /// Record on a virtual GPU of this name: --engine virtual-gpu --device-as NAME. Without a name, on that of --device
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with_all = ["engine", "device_as"], help_heading = "Engine",
          value_parser = Offered::new(device::offered), hide_possible_values = true)]
    virtual_gpu: Option<Option<String>>,
    /// Let the virtual GPU be full as the device would be: allocations beyond its memory fail with
    /// torch.OutOfMemoryError, so that scripts which handle it (auto_find_batch_size) do what they would do. Without,
    /// a job that does not fit is recorded whole
    #[arg(long, help_heading = "Engine")]
    enforce: bool,
    /// --enforce with this much memory instead of the device's, for example 20GiB
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device, help_heading = "Engine")]
    capacity: Option<Bytes>,
    /// Also write PyTorch's memory snapshot with call stacks, for pytorch.org/memory_viz, `xmem replay` and
    /// `xmem validate`: on a virtual GPU
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Engine")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Load zeros for weights that are not on this machine: transformers' from_pretrained needs config.json only, and
    /// files of safetensors may be cut off after their header
    #[arg(long, help_heading = "Engine")]
    pub(crate) without_weights: bool,
    /// Record the job with these measures, which `xmem fit` finds and `xmem run` applies: a list such as checkpointing=2,fused
    #[arg(long, value_name = "MEASURES", value_parser = list_of_changes(), hide_possible_values = true)]
    with: Option<Changes>,
    /// Values that a virtual GPU does not compute and that decide sizes: nonzero=0.1..0.5 for the share of
    /// elements in masks, unique=SHARE, routing=SHARE (of tokens to the same experts). With a range, the
    /// command is recorded twice, and the answer has a range
    #[arg(long, value_name = "NAME=SHARE", value_parser = assumptions, help_heading = "Engine")]
    assume: Option<Assumptions>,
    /// Record the command twice on a virtual GPU: with work that completes immediately, and with work that
    /// completes when the host waits for it. The answer has the range, which is that of jobs with several streams or collectives
    #[arg(long, help_heading = "Engine")]
    pub(crate) run_ahead: bool,
}

/// The ranks that are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RankChoice {
    All,
    /// All but those between two ranks that are equal.
    Auto,
    These(Vec<u32>),
}

impl ProfileArgs {
    /// The engine: a virtual GPU without a choice where an option says something about it.
    pub(crate) fn engine(&self) -> Engine {
        let is_of_virtual_gpu = self.snapshot.is_some()
            || self.capacity() != Capacity::Unlimited
            || self.assume.is_some()
            || self.run_ahead;
        match self.engine {
            Engine::Auto if self.virtual_gpu.is_some() || is_of_virtual_gpu => Engine::VirtualGpu,
            engine => engine,
        }
    }

    /// The memory that the script can allocate on a virtual GPU.
    pub(crate) fn capacity(&self) -> Capacity {
        match (self.capacity, self.enforce) {
            (Some(size), _) => Capacity::Of(size),
            (None, true) => Capacity::OfDevice,
            (None, false) => Capacity::Unlimited,
        }
    }

    /// The name of the GPU that the script sees; `of_then` is that of the command that follows.
    pub(crate) fn device<'a>(&'a self, of_then: Option<&'a str>) -> &'a str {
        let virtual_gpu = self.virtual_gpu.as_ref().and_then(Option::as_deref);
        let given = virtual_gpu.or(self.device_as.as_deref()).or(self.device.as_deref());
        given.or(of_then).unwrap_or(device::DEFAULT)
    }

    /// The name of the GPU that is to be answered for.
    pub(crate) fn answered(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// The number of iterations to record. With `--vary`, all lengths are seen, and the last iterations are
    /// neither the first nor without one that follows.
    pub(crate) fn steps(&self) -> NonZeroU32 {
        let lengths = self.varying_batches().map_or(0, |vary| vary.extents.len() as u32);
        let steps = self.steps.unwrap_or(DEFAULT_STEPS);
        match NonZeroU32::new(lengths + 2) {
            Some(least) if lengths > 0 => steps.max(least),
            _ => steps,
        }
    }

    /// How long the script may run after the recorded iterations; none if it is recorded more than once.
    pub(crate) fn rest(&self) -> Option<Duration> {
        let is_one_rank = matches!(&self.rank, RankChoice::These(ranks) if ranks.len() == 1);
        let is_single = self.vary.is_none() && !self.run_ahead && is_one_rank;
        let is_whole = is_single && self.assume.is_none() && self.steps.is_none();
        self.time.or(is_whole.then_some(DEFAULT_TIME))
    }

    /// Extents of recorded batches, the greatest first: those of a list, or the ends and the middle of a
    /// range.
    pub(crate) fn varying_batches(&self) -> Option<VaryingBatches> {
        const MAX_RECORDED: usize = 4;
        let vary = self.vary.as_ref()?;
        let mut extents = vary.extents.clone();
        if extents.len() > MAX_RECORDED {
            let (low, high) = (extents[0], extents[extents.len() - 1]);
            let middle = extents[extents.len() / 2];
            extents = vec![low, middle, high];
        }
        // The greatest first, and the least next: two lengths are seen whatever the number of iterations.
        extents.rotate_right(1);
        Some(VaryingBatches { dimension: vary.dimension.name(), extents })
    }

    /// The measures with which the job is recorded.
    pub(crate) fn with(&self) -> Changes {
        self.with.clone().unwrap_or_default()
    }

    /// Assumptions about values that a virtual GPU does not compute.
    pub(crate) fn assume(&self) -> Assumptions {
        self.assume.clone().unwrap_or_default()
    }
}

/// Reads `--assume`, whose shares may be percentages.
pub(crate) fn assumptions(text: &str) -> Result<Assumptions, String> {
    let number = |text: &str| match share(text) {
        Ok(share) if text.ends_with('%') => share.to_string(),
        _ => text.to_owned(),
    };
    let one = |assumption: &str| match assumption.split_once('=') {
        Some((name, shares)) => {
            let shares: Vec<String> = shares.split("..").map(number).collect();
            format!("{name}={}", shares.join(".."))
        }
        None => assumption.to_owned(),
    };
    text.split(',').map(one).collect::<Vec<_>>().join(",").parse()
}

fn rank_choice(text: &str) -> Result<RankChoice, String> {
    if text == "all" {
        return Ok(RankChoice::All);
    }
    if text == "auto" {
        return Ok(RankChoice::Auto);
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|rank| rank.trim().parse()).collect();
    let mut ranks =
        numbers.map_err(|_| "expected `all`, `auto` or ranks such as 0 or 0,7".to_owned())?;
    let mut seen = std::collections::BTreeSet::new();
    ranks.retain(|rank| seen.insert(*rank));
    Ok(RankChoice::These(ranks))
}

choices! {
    Engine {
        Cpu => PossibleValue::new(Engine::Cpu.name()),
        VirtualGpu => PossibleValue::new(Engine::VirtualGpu.name()),
        Auto => PossibleValue::new(Engine::Auto.name()),
    }
}

choices! {
    OverlayChoice {
        Auto => PossibleValue::new("auto"),
        Namespace => PossibleValue::new("namespace"),
        Preload => PossibleValue::new("preload"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_assumptions_may_be_percentages() {
        for (text, numbers) in [
            ("nonzero=10%", "nonzero=0.1"),
            ("nonzero=10%..50%,routing=0", "nonzero=0.1..0.5,routing=0"),
            ("unique=0.25..50%", "unique=0.25..0.5"),
        ] {
            assert_eq!(assumptions(text), numbers.parse(), "{text}");
        }
        for text in ["nonzero=200%", "nonzero=%", "nonzero", "10%"] {
            assumptions(text).expect_err(text);
        }
    }
}
