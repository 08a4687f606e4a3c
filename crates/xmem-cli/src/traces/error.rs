//! Arguments that name no traces.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

failures! {
    /// Arguments that name no traces.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum TracesFailure {
        #[error("standard input can be read only once, but `-` was given {count} times")]
        #[diagnostic(help("give `-` once, or give file names"))]
        StdinTwice { count: usize } => Usage,
        #[error("no traces found in folder `{}`", shown(folder))]
        #[diagnostic(help(
            "a folder is searched recursively for *.json, *.json.gz and *.json.zst; for other names use \
             a glob pattern, for example '{}/**/*.trace'",
            shown(folder)
        ))]
        EmptyFolder { folder: PathBuf } => Unreadable,
        #[error("no file matches `{pattern}`")]
        #[diagnostic(help(
            "* and ? match anything except /, ** matches any number of folders; to search a folder, give \
             its name"
        ))]
        NoMatch { pattern: String } => Unreadable,
        #[error("`{pattern}` is neither an existing file nor a valid glob pattern")]
        Pattern { pattern: String, source: globset::Error } => Usage,
        #[error("cannot read the list of traces `{}`", shown(path))]
        #[diagnostic(help("@FILE reads trace paths from FILE, one per line"))]
        List { path: PathBuf, source: std::io::Error } => Unreadable,
        #[error("the list `{list}` contains no traces")]
        #[diagnostic(help("write one trace path per line; lines that begin with # are comments"))]
        EmptyList { list: String } => Unreadable,
        #[error("line {line} of the list `{list}` is not the name of an existing file")]
        #[diagnostic(help(
            "@FILE names a list with one trace path per line; the line is not shown, as the file may be \
             something else. With --literal-paths, `@` has no meaning at the beginning of a name"
        ))]
        NotAList { list: String, line: usize } => Unreadable,
        #[error("cannot read folder `{place}`")]
        #[diagnostic(help("check its permissions"))]
        Folder { place: String, source: Arc<walkdir::Error> } => Unreadable,
    }
}
