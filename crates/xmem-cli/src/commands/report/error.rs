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
        OneRunOnly { count: usize } => Usage XM0441 {
            title: "format of a single run",
            cause: "This format shows one run, and the command has several.",
            example: "xmem report a.json b.json --device t4-16g -o timeline.svg",
            fix: "Use `--format html`, which shows and compares several, or run `xmem report` once for each.",
        },
        #[error("refusing to write HTML to a terminal")]
        #[diagnostic(help("name a file: -o report.html, with --open to open it in the browser"))]
        PageToTerminal => Usage XM0442 {
            title: "binary or HTML output to a terminal",
            cause: "Standard output is a terminal, which cannot show this format.",
            example: "xmem report trace.json.zst --device t4-16g",
            fix: "Name a file, for example `-o report.html`. With `--open`, the browser opens it.",
        },
        #[error("refusing to write {format} to a terminal")]
        #[diagnostic(help("name a file: -o {file}"))]
        FileToTerminal { format: &'static str, file: &'static str } => Usage XM0442,
        #[error("no format of `xmem report` has the ending of `{}`", shown(path))]
        #[diagnostic(help(
            "use .html, .svg, .folded, .pftrace, .speedscope.json, .parquet (which pandas, polars and DuckDB read) or \
             .jsonl, or name the format: --format html"
        ))]
        UnknownEnding { path: PathBuf } => Usage XM0443 {
            title: "unknown ending of a report",
            cause: "The format follows from the ending of the file, and no format has this ending.",
            example: "xmem report trace.json.zst --device t4-16g -o report.docx",
            fix: "Use an ending that `xmem report --help` lists, or name the format with `--format html`.",
        },
    }
}
