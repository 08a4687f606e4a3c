//! Reports that cannot be made.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;

failures! {
    /// A report that cannot be made.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ReportFailure {
        #[error("this format shows a single run, but {count} were given")]
        #[diagnostic(help("--format html shows several, and compares them"))]
        OneRunOnly { count: usize } => Usage,
        #[error("refusing to write HTML to a terminal")]
        #[diagnostic(help("name a file: -o report.html, with --open to open it in the browser"))]
        PageToTerminal => Usage,
        #[error("refusing to write {format} to a terminal")]
        #[diagnostic(help("name a file: -o {file}"))]
        FileToTerminal { format: &'static str, file: &'static str } => Usage,
        #[error("no format of `xmem report` has the ending of `{}`", shown(path))]
        #[diagnostic(help(
            "use .html, .svg, .folded, .pftrace, .speedscope.json, .parquet (which pandas, polars and DuckDB read) or \
             .jsonl, or name the format: --format html"
        ))]
        UnknownEnding { path: PathBuf } => Usage,
    }
}
