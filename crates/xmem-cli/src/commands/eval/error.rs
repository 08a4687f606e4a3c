//! Evaluations that cannot be made.

use super::place::StorePlace;
use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use thiserror::Error;
use xmem_tempfiles::FolderError;

failures! {
    /// An evaluation that cannot be made.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum EvalFailure {
        #[error("cannot read `{}`", shown(path))]
        Read { path: PathBuf, source: io::Error } => Unreadable XM0901 {
            title: "unreadable file of an evaluation",
            cause: "The matrix or a table of readings does not exist or cannot be read.",
            example: "xmem eval missing.toml",
            fix: "Check the path and the permissions of the file with `ls -l FILE`.",
        },
        #[error("`{}` is not a matrix of jobs", shown(path))]
        #[diagnostic(help("the page on evaluation in the guide describes it"))]
        Matrix { path: PathBuf, source: toml::de::Error } => Unreadable XM0902 {
            title: "invalid matrix of jobs",
            cause: "The file is not TOML, or has a key that xmem does not know.",
            example: "xmem eval broken.toml",
            fix: "Correct the place that the message shows; `xmem eval --help` has an example.",
        },
        #[error("`{}` has no [[jobs]]", shown(path))]
        NoJobs { path: PathBuf } => Unreadable XM0903 {
            title: "matrix without jobs",
            cause: "The matrix has no `[[jobs]]` table, or a family of jobs has no command.",
            example: "xmem eval empty.toml",
            fix: "Add a `[[jobs]]` table with a `command`; `xmem eval --help` has an example.",
        },
        #[error("the command of the {family} jobs has {{{factor}}}, which is not one of their factors")]
        #[diagnostic(help("add it to [jobs.factors]"))]
        Placeholder { family: String, factor: String } => Unreadable XM0904 {
            title: "placeholder without a factor",
            cause: "The command of a family has a placeholder in braces that is not one of its factors.",
            example: "xmem eval matrix.toml",
            fix: "Add the factor to `[jobs.factors]`, or correct the name in the command.",
        },
        #[error("the {family} jobs have no device")]
        #[diagnostic(help("add `device` to [jobs.factors]; `xmem devices` lists the names"))]
        NoDevice { family: String } => Unreadable XM0905 {
            title: "jobs without a device",
            cause: "A family of jobs names no device.",
            example: "xmem eval matrix.toml",
            fix: "Add `device` to `[jobs.factors]`; `xmem devices` lists the names.",
        },
        #[error("the {family} jobs have no command")]
        NoCommand { family: String } => Unreadable XM0903,
        #[error("the range of `{factor}` in the {family} jobs has no values")]
        Range { family: String, factor: String } => Unreadable XM0906 {
            title: "empty range of a factor",
            cause: "The range of a factor has no values, for example because its end is before its start.",
            example: "xmem eval matrix.toml",
            fix: "Correct the range in `[jobs.factors]`.",
        },
        #[error("invalid policies of the estimator `{estimator}`: {reason}")]
        Policies { estimator: String, reason: String } => Unreadable XM0907 {
            title: "invalid policies of an estimator",
            cause: "The policies that the matrix gives to an estimator cannot be read.",
            example: "xmem eval matrix.toml",
            fix: "Correct them as the message says; `xmem eval --help` lists the estimators.",
        },
        #[error("the matrix has {count} jobs")]
        #[diagnostic(help("--sample N evaluates some of them, and --only FACTOR=VALUE a part"))]
        TooMany { count: u64 } => Usage XM0908 {
            title: "too many jobs",
            cause: "The product of all factors has more jobs than can be evaluated.",
            example: "xmem eval matrix.toml",
            fix: "Evaluate some with `--sample 100`, or a part with `--only FACTOR=VALUE`.",
        },
        #[error("unknown estimator `{name}`")]
        #[diagnostic(help("the estimators are {}", known.join(", ")))]
        Estimator { name: String, known: Vec<String> } => Usage XM0909 {
            title: "unknown estimator",
            cause: "No estimator has this name.",
            example: "xmem eval matrix.toml --estimators llm",
            fix: "Use a name that the message lists, for example `--estimators xmem`.",
        },
        #[error("no job has {}", only.iter().map(|(factor, value)| format!("{factor}={value}")).collect::<Vec<_>>().join(" and "))]
        NoneChosen { only: Vec<(String, String)> } => Usage XM0910 {
            title: "no job chosen",
            cause: "No job of the matrix has the values of `--only`.",
            example: "xmem eval matrix.toml --only model=none",
            fix: "Use a value from the matrix: `--only FACTOR=VALUE`.",
        },
        #[error("`{}` is not a table of readings: {reason}", shown(path))]
        #[diagnostic(help("the page on evaluation in the guide describes its columns"))]
        Readings { path: PathBuf, reason: String } => Unreadable XM0911 {
            title: "invalid table of readings",
            cause: "The file of measured peaks is not CSV, or lacks a column.",
            example: "xmem eval matrix.toml --readings broken.csv",
            fix: "Correct the column that the message names; `xmem eval --help` describes the options.",
        },
        #[error("`{}` is not the table of an evaluation: {reason}", shown(path))]
        #[diagnostic(help("`xmem eval MATRIX --format parquet -o FILE` writes one"))]
        Results { path: PathBuf, reason: String } => Unreadable XM0918 {
            title: "invalid table of an evaluation",
            cause: "The file of `--results` is not Parquet, was written by something else, or is damaged.",
            example: "xmem eval matrix.toml --results runs.csv",
            fix: "Name a file that `xmem eval MATRIX --format parquet -o FILE` wrote.",
        },
        #[error("cannot write to the store `{store}`")]
        #[diagnostic(help("--store DIR names another folder"))]
        Store { store: StorePlace, source: io::Error } => Unreadable XM0912 {
            title: "folder that cannot be written",
            cause: "The folder of `--store` or `--figures` cannot be created or written.",
            example: "xmem eval matrix.toml --store /proc/store",
            fix: "Name a folder that you can write to, for example `--store runs`.",
        },
        #[error("cannot make the folder `{}`", shown(path))]
        #[diagnostic(help("--figures needs a folder that can be written to"))]
        Figures { path: PathBuf, source: io::Error } => Unreadable XM0912,
        #[error("the store `{store}` contains no recording of the {count} jobs")]
        #[diagnostic(help("run without --without-recording, or name the store with --store"))]
        Empty { store: StorePlace, count: usize } => Unreadable XM0913 {
            title: "store without the jobs",
            cause:
                "`--without-recording` takes recordings from the store, and the store has no recording of these jobs.",
            example: "xmem eval matrix.toml --without-recording",
            fix: "Run `xmem eval MATRIX` without `--without-recording`, or name the folder with `--store`.",
        },
        #[error("none of the {count} jobs could be evaluated: {reason}")]
        #[diagnostic(help("`xmem profile` with the command of one job says more"))]
        NothingEvaluated { count: usize, reason: String } => Unreadable XM0914 {
            title: "no job evaluated",
            cause: "Each job failed or could not be recorded.",
            example: "xmem eval matrix.toml",
            fix: "Run `xmem profile -- COMMAND` with the command of one job to see the reason.",
        },
        #[error("--on kubernetes needs a container image")]
        #[diagnostic(help("--image names one with xmem and the Python environment of the jobs"))]
        NoImage => Usage XM0915 {
            title: "cluster without an image or a shared store",
            cause:
                "`--on kubernetes` starts containers, which need an image. All machines of a cluster need one store.",
            example: "xmem eval matrix.toml --on kubernetes",
            fix:
                "Add `--image NAME` with xmem and the Python environment of the jobs, and `--store` with a shared \
                 folder.",
        },
        #[error("--on needs a store that all machines of the cluster have")]
        #[diagnostic(help("--store names a folder of a shared file system, or s3://BUCKET/PREFIX"))]
        NoStore => Usage XM0915,
        #[error("cannot make a folder for copies of recordings")]
        TemporaryFolder(#[from] FolderError) => Unreadable XM0912,
        #[error("cannot start `{program}`")]
        #[diagnostic(help("print the job script without --submit, and submit it where `{program}` is installed"))]
        NotStarted { program: String, source: io::Error } => Unreadable XM0917 {
            title: "job script that was not submitted",
            cause: "`--submit` hands the job script to `sbatch`, `kubectl` or Python, which is missing or failed.",
            example: "xmem eval matrix.toml --on slurm --shards 8 --store /shared/store --submit",
            fix: "Print the script without `--submit`, and submit it yourself: the message of the program says why it failed.",
        },
        #[error("`{program}` did not take the job script: {status}")]
        NotSubmitted { program: String, status: ExitStatus } => Unreadable XM0917,
    }
}
