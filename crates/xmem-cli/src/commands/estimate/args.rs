//! Arguments of `xmem estimate`.

use super::batches::{BatchArg, batch};
use crate::choice::{choice, choices};
use crate::device::DeviceArgs;
use crate::estimate::EstimateArgs;
use crate::values::count;
use clap::{Args, ValueEnum, ValueHint};
use std::num::NonZeroU32;
use std::path::PathBuf;
use xmem_estimate::{JobSettings, LossChoice, Purpose, RankSettings};

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] = &[
    "graph",
    "training",
    "inference",
    "optimizer",
    "batch",
    "length",
    "autocast",
    "device",
    "capacity",
    "format",
    "full",
    "trace",
];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem export -o model.pt2 -- python train.py                  write the graph of a script\n  \
        xmem estimate model.pt2 --device a100-40g                    the script's own settings\n  \
        xmem estimate model.pt2 -d a100-40g --batch 8,16,32,64       other batch sizes\n  \
        xmem estimate model.pt2 -d a100-40g --batch 1..512           the largest batch that fits\n  \
        xmem estimate model.pt2 -d a100-40g --ranks 8 --fsdp          one of 8 GPUs, with FSDP2\n  \
        xmem estimate resnet.pt2 --training --optimizer sgd:momentum --loss cross-entropy -d t4-16g\n  \
        xmem estimate model.pt2 --inference --dtype bfloat16 -d l4-24g\n  \
        xmem estimate model.onnx --training --optimizer sgd:momentum --loss cross-entropy --batch 16 -d t4-16g\n\n\
        Exit code: 0 fits, 1 does not fit, 2 usage error, 3 unreadable or not a graph, 4 verdict withheld. With\n\
        several batches the worst one decides, of a range the best one."
)]
pub(crate) struct EstimateGraphArgs {
    /// Graph of a model, a .pt2 of torch.export or an .onnx; as `xmem export`, torch.export.save and
    /// torch.onnx.export write it; weights are not read; `-` for standard input
    #[arg(value_name = "GRAPH", value_hint = ValueHint::FilePath)]
    pub(crate) graph: PathBuf,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) estimate: EstimateArgs,
    #[command(flatten)]
    pub(crate) answer: GraphAnswerArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Job (default: what `xmem export` noted)")]
pub(crate) struct JobArgs {
    /// Train: forward, backward and optimizer
    #[arg(long, conflicts_with = "inference")]
    pub(crate) training: bool,
    /// Forward only, without gradients
    #[arg(long, conflicts_with_all = ["optimizer", "loss", "accumulation"])]
    pub(crate) inference: bool,
    /// Optimizer of torch.optim with its options, for example adamw, sgd:momentum or adam:fused
    #[arg(long, value_name = "NAME[:OPTION...]")]
    pub(crate) optimizer: Option<String>,
    /// Loss of the model's first result, where the graph does not end in one
    #[arg(long, value_name = "LOSS", value_parser = choice::<LossChoice>())]
    pub(crate) loss: Option<LossChoice>,
    /// Batch sizes, each with a separate answer, where the graph leaves the size open; of a range such as 1..512 the
    /// largest size that fits
    #[arg(long, value_name = "N,...|LOW..HIGH", value_delimiter = ',', value_parser = batch)]
    pub(crate) batch: Vec<BatchArg>,
    /// Length of sequences, where the graph leaves it open
    #[arg(long, value_name = "N", value_parser = count::<NonZeroU32>)]
    pub(crate) length: Option<NonZeroU32>,
    /// Autocast around the forward: bfloat16, float16, or off
    #[arg(long, value_name = "TYPE")]
    pub(crate) autocast: Option<String>,
    /// Type of parameters and floating-point inputs, as `model.to(TYPE)` converts them
    #[arg(long, value_name = "TYPE")]
    pub(crate) dtype: Option<String>,
    /// Forward and backward passes for each step of the optimizer
    #[arg(long, value_name = "N", value_parser = count::<NonZeroU32>)]
    pub(crate) accumulation: Option<NonZeroU32>,
    /// Modules whose activations are computed again in backward (torch.utils.checkpoint), by the end of their
    /// path; `*` stands for one name, for example 'layers.*'
    #[arg(long, value_name = "MODULE,...", value_delimiter = ',')]
    pub(crate) checkpoint: Vec<String>,
    /// Parameters that need no gradient, by a prefix of their path
    #[arg(long, value_name = "PREFIX,...", value_delimiter = ',')]
    pub(crate) freeze: Vec<String>,
    #[command(flatten)]
    pub(crate) ranks: RankArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Several GPUs")]
pub(crate) struct RankArgs {
    /// GPUs, each with a process and a batch of this size. Each has the whole model (DistributedDataParallel), unless --fsdp
    /// divides it
    #[arg(long, value_name = "N", value_parser = count::<NonZeroU32>)]
    pub(crate) ranks: Option<NonZeroU32>,
    /// Divide these modules one by one, and then the model, with fully_shard (FSDP2); modules as in --checkpoint. Without
    /// names: the blocks of the model
    #[arg(
        long,
        value_name = "MODULE,...",
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        requires = "ranks"
    )]
    pub(crate) fsdp: Option<Vec<String>>,
    /// Type in which FSDP gathers parameters; gradients are summed in float32 (MixedPrecisionPolicy)
    #[arg(long, value_name = "TYPE", requires = "fsdp")]
    pub(crate) fsdp_dtype: Option<String>,
    /// Keep gathered parameters until backward (reshard_after_forward=False)
    #[arg(long, requires = "fsdp")]
    pub(crate) fsdp_no_reshard: bool,
    /// Gradients are views of the buckets (gradient_as_bucket_view=True of DistributedDataParallel)
    #[arg(long, requires = "ranks", conflicts_with = "fsdp")]
    pub(crate) ddp_bucket_view: bool,
}

impl RankArgs {
    fn settings(&self) -> Option<RankSettings> {
        Some(RankSettings {
            count: self.ranks?.get(),
            gradient_as_bucket_view: self.ddp_bucket_view,
            fully_shard: self.fsdp.clone(),
            param_dtype: self.fsdp_dtype.clone(),
            keeps_gathered: self.fsdp_no_reshard,
        })
    }
}

impl JobArgs {
    /// The job with these options and one of the batch sizes.
    pub(super) fn settings(&self, batch: Option<NonZeroU32>) -> JobSettings {
        let purpose = match (self.training, self.inference) {
            (_, true) => Some(Purpose::Inference),
            (true, _) => Some(Purpose::Training),
            _ => None,
        };
        JobSettings {
            purpose,
            optimizer: self.optimizer.clone(),
            loss: self.loss,
            accumulation: self.accumulation.map(NonZeroU32::get),
            autocast: self.autocast.clone(),
            dtype: self.dtype.clone(),
            checkpoints: self.checkpoint.clone(),
            frozen: self.freeze.clone(),
            batch: batch.map(NonZeroU32::get),
            length: self.length.map(NonZeroU32::get),
            ranks: self.ranks.settings(),
        }
    }
}

choices! {
    LossChoice by name {
        CrossEntropy => "Cross entropy with classes as targets",
        Mse => "Mean squared error",
        BinaryCrossEntropy => "Binary cross entropy with logits",
        Sum => "The sum of the result",
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct GraphAnswerArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,
    /// Write the answer to a file, atomically
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Show all of a text answer: also the timeline, all roles and where the largest blocks come from
    #[arg(long)]
    pub(crate) full: bool,
    /// Show all notes of a text answer, not only the warnings
    #[arg(long)]
    pub(crate) notes: bool,
    /// Find the smallest device memory in which the job runs
    #[arg(long)]
    pub(crate) min_capacity: bool,
    /// Write what the job does as a profiler's trace, which every other command reads
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    /// Write the memory with any batch size of --batch LOW..HIGH for `xmem check --at batch=N` and job gates (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) law: Option<PathBuf>,
    /// Exit with 0 whatever the verdict is; errors still exit with their own code
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Human-readable; several batches as a table
    Text,
    /// One document; for several batches an array
    Json,
    /// One document per line
    Jsonl,
    /// One row per answer with the main figures, below a header
    Csv,
}
