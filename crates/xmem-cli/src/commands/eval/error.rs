//! Evaluations that cannot be made.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

failures! {
    /// An evaluation that cannot be made.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum EvalFailure {
        #[error("cannot read `{}`", shown(path))]
        Read { path: PathBuf, source: io::Error } => Unreadable,
        #[error("`{}` is not a matrix of jobs", shown(path))]
        #[diagnostic(help("the page on evaluation in the guide describes it"))]
        Matrix { path: PathBuf, source: toml::de::Error } => Unreadable,
        #[error("`{}` has no [[jobs]]", shown(path))]
        NoJobs { path: PathBuf } => Unreadable,
        #[error("the command of the {family} jobs has {{{factor}}}, which is not one of their factors")]
        #[diagnostic(help("add it to [jobs.factors]"))]
        Placeholder { family: String, factor: String } => Unreadable,
        #[error("the {family} jobs have no device")]
        #[diagnostic(help("add `device` to [jobs.factors]; `xmem devices` lists the names"))]
        NoDevice { family: String } => Unreadable,
        #[error("the {family} jobs have no command")]
        NoCommand { family: String } => Unreadable,
        #[error("the range of `{factor}` in the {family} jobs has no values")]
        Range { family: String, factor: String } => Unreadable,
        #[error("invalid policies of the estimator `{estimator}`: {reason}")]
        Policies { estimator: String, reason: String } => Unreadable,
        #[error("the matrix has {count} jobs")]
        #[diagnostic(help("--sample N evaluates some of them, and --only FACTOR=VALUE a part"))]
        TooMany { count: u64 } => Usage,
        #[error("unknown estimator `{name}`")]
        #[diagnostic(help("the estimators are {}", known.join(", ")))]
        Estimator { name: String, known: Vec<String> } => Usage,
        #[error("no job has {}", only.iter().map(|(factor, value)| format!("{factor}={value}")).collect::<Vec<_>>().join(" and "))]
        NoneChosen { only: Vec<(String, String)> } => Usage,
        #[error("`{}` is not a table of readings: {reason}", shown(path))]
        #[diagnostic(help("the page on evaluation in the guide describes its columns"))]
        Readings { path: PathBuf, reason: String } => Unreadable,
        #[error("cannot write to the store `{}`", shown(path))]
        #[diagnostic(help("--store DIR names another folder"))]
        Store { path: PathBuf, source: io::Error } => Unreadable,
        #[error("cannot make the folder `{}`", shown(path))]
        #[diagnostic(help("--figures needs a folder that can be written to"))]
        Figures { path: PathBuf, source: io::Error } => Unreadable,
        #[error("the store `{}` contains no recording of the {count} jobs", shown(path))]
        #[diagnostic(help("run without --without-recording, or name the store with --store"))]
        Empty { path: PathBuf, count: usize } => Unreadable,
        #[error("none of the {count} jobs could be evaluated: {reason}")]
        #[diagnostic(help("`xmem profile` with the command of one job says more"))]
        NothingEvaluated { count: usize, reason: String } => Unreadable,
        #[error("--on kubernetes needs a container image")]
        #[diagnostic(help("--image names one with xmem and the Python environment of the jobs"))]
        NoImage => Usage,
        #[error("--on needs a store that all machines of the cluster have")]
        #[diagnostic(help("--store names a folder of a shared file system"))]
        NoStore => Usage,
    }
}
