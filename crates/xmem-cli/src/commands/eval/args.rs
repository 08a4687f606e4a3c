//! Arguments of `xmem eval`.

use super::place::StorePlace;
use crate::cudnn::CudnnArgs;
use crate::shard::Shard;
use crate::values::count;
use clap::{Args, ValueEnum, ValueHint};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] =
    &["matrix", "readings", "sample", "seed", "store", "shard", "format", "output"];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "A matrix names jobs (a command with {model}, {batch} and other factors), devices and estimators. Each job is\n\
        recorded and estimated, run in the memory of the device (first round), and run again with only as much\n\
        memory as was estimated (second round), on a virtual GPU. With --readings, the first round is one that was\n\
        measured elsewhere. Recordings are kept in the store: run it again to continue one that was stopped.\n\n\
        Examples:\n  \
        xmem eval benches/paper/xmem.toml --sample 60 --seed 1\n  \
        xmem eval benches/paper/xmem.toml --readings benches/paper/readings.csv --format html -o paper.html\n  \
        xmem eval benches/paper/xmem.toml --readings benches/paper/readings.csv --estimators xmem-original,dnnmem\n  \
        xmem eval benches/paper/xmem.toml --readings benches/paper/readings.csv --results benches/paper/results.parquet\n  \
        xmem eval matrix.toml --shard 3/64 --store /shared/store\n  \
        xmem eval matrix.toml --on slurm --shards 64 --store /shared/store --submit\n\n\
        Exit code: 0 all jobs were evaluated, 2 usage error, 3 a file cannot be read or written, 4 some jobs could\n\
        not be evaluated."
)]
pub(crate) struct EvalArgs {
    /// Matrix of jobs, a TOML file
    #[arg(value_name = "MATRIX.toml", value_hint = ValueHint::FilePath)]
    pub(crate) matrix: PathBuf,
    /// Measured runs: a CSV file with the factors of each run, `peak_bytes` and `out_of_memory`, and columns
    /// `NAME.memory_bytes`, `NAME.out_of_memory` and so on for estimates that others published
    #[arg(long, value_name = "FILE.csv", value_hint = ValueHint::FilePath)]
    pub(crate) readings: Option<PathBuf>,
    /// Evaluate this many jobs, drawn at random, instead of all
    #[arg(long, value_name = "N", value_parser = count::<NonZeroU64>)]
    pub(crate) sample: Option<NonZeroU64>,
    /// Seed of the draw: the same seed draws the same jobs
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Evaluate only jobs whose factor has this value; repeatable
    #[arg(long, value_name = "FACTOR=VALUE", value_parser = only)]
    pub(crate) only: Vec<(String, String)>,
    /// Estimators to judge, in place of all of the matrix and of the readings; those of the readings alone need no recording
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) estimators: Vec<String>,
    /// Answer of an earlier evaluation (--format parquet): what it has of a job is not recorded again; repeatable
    #[arg(long, value_name = "FILE.parquet", value_hint = ValueHint::FilePath)]
    pub(crate) results: Vec<PathBuf>,
    /// Folder with the recordings, or s3://BUCKET/PREFIX, gs:// or az:// [default: MATRIX.store beside the matrix]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) store: Option<StorePlace>,
    /// Record the jobs of one part of all, for example 3/64, and print no answer; run without it when all parts are done
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Print a job script for a cluster that records all parts, instead of recording
    #[arg(long, value_enum, value_name = "CLUSTER", conflicts_with_all = ["shard", "format", "without_recording"], requires = "shards")]
    pub(crate) on: Option<Cluster>,
    /// Submit the job script instead of printing it, with sbatch, kubectl or Python
    #[arg(long, requires = "on", conflicts_with = "output")]
    pub(crate) submit: bool,
    /// Parts of the job script
    #[arg(long, value_name = "N", requires = "on", value_parser = count::<NonZeroU64>)]
    pub(crate) shards: Option<NonZeroU64>,
    /// Container image of the job script for Kubernetes
    #[arg(long, value_name = "IMAGE", requires = "on")]
    pub(crate) image: Option<String>,
    /// Record nothing: evaluate the jobs that are in the store
    #[arg(long)]
    pub(crate) without_recording: bool,
    /// Do not run the jobs a second time with only as much memory as was estimated
    #[arg(long)]
    pub(crate) without_second_round: bool,
    /// Recordings that run side by side [default: 2]
    #[arg(long, value_name = "N", value_parser = count::<NonZeroUsize>)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: EvalFormat,
    /// Write the answer to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write the figures as SVG files to this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
    /// The source for estimates from graphs.
    #[command(flatten)]
    pub(crate) cudnn: CudnnArgs,
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalFormat {
    /// Text.
    Text,
    /// JSON, schema xmem.eval/1.
    Json,
    /// A row for each job and estimator.
    Csv,
    /// The same rows, for data frames.
    Parquet,
    /// Tables for a document.
    Markdown,
    /// A page with the figures.
    Html,
}

/// A cluster that runs the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cluster {
    /// A job array, for sbatch.
    Slurm,
    /// An Indexed Job, for kubectl apply.
    Kubernetes,
    /// Tasks of Ray: a script for Python.
    Ray,
}

fn only(text: &str) -> Result<(String, String), String> {
    let (factor, value) =
        text.split_once('=').ok_or("expected a factor and a value, for example model=VGG16")?;
    Ok((factor.trim().to_owned(), value.trim().to_owned()))
}
