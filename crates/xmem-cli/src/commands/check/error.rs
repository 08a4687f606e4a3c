//! Jobs that cannot be checked.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem_gate::{BaselineError, ManifestError, ParseRequestError, SlurmError, Unresolved};
use xmem_report::json::ReadLawError;

failures! {
    /// A job that cannot be checked, or a decision that cannot be written.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum CheckFailure {
        #[error("no trace given")]
        #[diagnostic(help(
            "give the path of a trace, or --slurm-job with a script that has a line `#XMEM --trace FILE`"
        ))]
        NoTrace => Usage,
        #[error("the job script `{}` names no trace", shown(path))]
        #[diagnostic(help(
            "add a line `#XMEM --trace FILE` before its first command, or give the trace as an argument"
        ))]
        NoTraceInScript { path: PathBuf } => Usage,
        #[error(transparent)]
        Request(ParseRequestError) => Usage,
        #[error("cannot read the submission")]
        Submission(#[source] SlurmError) => Usage,
        #[error("cannot read the job script `{}`", shown(path))]
        Script { path: PathBuf, source: SlurmError } => Usage,
        #[error("cannot tell on which GPU the job would run")]
        #[diagnostic(help(
            "{}; `--device a100-40g` names a GPU directly",
            site.as_deref().map_or_else(
                || "there is no site file: /etc/xmem/site.toml, XMEM_SITE or --site".to_owned(),
                |file| format!("the site file is `{}`", shown(file)),
            )
        ))]
        Unresolved { source: Unresolved, site: Option<PathBuf> } => Usage,
        #[error("cannot read the manifest `{}`", shown(path))]
        #[diagnostic(help("the file was not changed"))]
        Manifest { path: PathBuf, source: ManifestError } => Unreadable,
        #[error("cannot annotate the manifest `{}`", shown(path))]
        #[diagnostic(help("the file was not changed; without --write it is only read"))]
        Annotate { path: PathBuf, source: ManifestError } => Unreadable,
        #[error("nothing to write into `{}`: the verdict of a trace was withheld", shown(path))]
        #[diagnostic(help("the file was not changed"))]
        NothingToWrite { path: PathBuf } => Withheld,
        #[error("--write needs a trace in a file, not standard input")]
        WriteOfStdin => Usage,
        #[error("no memory figure: the verdict of a trace was withheld")]
        #[diagnostic(help("--format text says why"))]
        NoNumber => Withheld,
        #[error("`{}` is a law: it says what a job needs with each value of {name}", shown(path))]
        #[diagnostic(help("add the value, for example --at {name}={example}"))]
        NoValue { path: PathBuf, name: String, example: u64 } => Usage,
        #[error("`{}` is a law of {name}, not of {asked}", shown(path))]
        #[diagnostic(help("write --at {name}=VALUE"))]
        OtherNumber { path: PathBuf, name: String, asked: String } => Usage,
        #[error("{name} {value} is beyond the law `{}`, which goes from {low} to {high}", shown(path))]
        #[diagnostic(help("`xmem fit --law FILE --range {name}=LOW..HIGH` makes one of other values"))]
        BeyondLaw { path: PathBuf, name: String, value: u64, low: u64, high: u64 } => Usage,
        #[error("`{}` is a law for {device}; it does not hold for {asked}", shown(path))]
        #[diagnostic(help("make one for it: xmem fit -d {asked} --law FILE -- COMMAND"))]
        LawOfOtherDevice { path: PathBuf, device: String, asked: String } => Usage,
        #[error("cannot read the law `{}`", shown(path))]
        #[diagnostic(help("`xmem fit --law FILE -- COMMAND` writes one"))]
        Law { path: PathBuf, source: ReadLawError } => Unreadable,
        #[error("--at needs a law, and `{}` is not one", shown(path))]
        #[diagnostic(help("`xmem fit --law FILE -- COMMAND` writes one; a trace has one value"))]
        NotALaw { path: PathBuf } => Usage,
        #[error("--update-baseline needs a file")]
        #[diagnostic(help("add --baseline FILE, for example --baseline .xmem/baseline.json"))]
        NoBaseline => Usage,
        #[error("cannot read the baseline `{}`", shown(path))]
        #[diagnostic(help(
            "`xmem check … --baseline FILE --update-baseline` writes a baseline; the file was not changed"
        ))]
        Baseline { path: PathBuf, source: BaselineError } => Unreadable,
    }
}
