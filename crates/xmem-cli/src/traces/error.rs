//! Arguments that name no traces.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use xmem_objects::ObjectAddress;

failures! {
    /// Arguments that name no traces.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum TracesFailure {
        #[error("standard input can be read only once, but `-` was given {count} times")]
        #[diagnostic(help("give `-` once, or give file names"))]
        StdinTwice { count: usize } => Usage XM0221 {
            title: "standard input given twice",
            cause: "`-` stands for standard input, which can be read only once.",
            example: "xmem replay - - --device t4-16g",
            fix: "Give `-` once, or give file names.",
        },
        #[error("no traces found in folder `{}`", shown(folder))]
        #[diagnostic(help(
            "a folder is searched recursively for *.json, *.json.gz and *.json.zst; for other names use \
             a glob pattern, for example '{}/**/*.trace'",
            shown(folder)
        ))]
        EmptyFolder { folder: PathBuf } => Unreadable XM0222 {
            title: "folder without traces",
            cause: "A folder is searched for *.json, *.json.gz and *.json.zst, and it has no such file.",
            example: "xmem replay empty-folder --device t4-16g",
            fix:
                "Check the folder, or use a pattern for other names: `xmem replay 'runs/**/*.trace' --device t4-16g`.",
        },
        #[error("no traces found at `{address}`")]
        #[diagnostic(help("an address is searched for *.json, *.json.gz and *.json.zst"))]
        NoObjects { address: ObjectAddress } => Unreadable XM0222,
        #[error("no file matches `{pattern}`")]
        #[diagnostic(help(
            "* and ? match anything except /, ** matches any number of folders; to search a folder, give \
             its name"
        ))]
        NoMatch { pattern: String } => Unreadable XM0223 {
            title: "pattern without a match",
            cause: "No file matches the glob pattern.",
            example: "xmem replay 'runs/*.trace' --device t4-16g",
            fix:
                "Check the pattern: `*` and `?` do not match `/`, `**` matches any number of folders. \
                 `--literal-paths` takes names as they are.",
        },
        #[error("`{pattern}` is neither an existing file nor a valid glob pattern")]
        Pattern { pattern: String, source: globset::Error } => Usage XM0224 {
            title: "invalid pattern",
            cause: "The argument is neither an existing file nor a valid glob pattern.",
            example: "xmem replay 'run[1.json' --device t4-16g",
            fix: "Correct the pattern, or add `--literal-paths` if the name has characters of patterns.",
        },
        #[error("cannot read the list of traces `{}`", shown(path))]
        #[diagnostic(help("@FILE reads trace paths from FILE, one per line"))]
        List { path: PathBuf, source: std::io::Error } => Unreadable XM0225 {
            title: "unreadable list of traces",
            cause: "The argument `@FILE` names a list of traces, and the file cannot be read.",
            example: "xmem replay @missing.txt --device t4-16g",
            fix:
                "Write one path per line into the file. For a trace whose name begins with `@`, add `--literal-paths`.",
        },
        #[error("the list `{list}` contains no traces")]
        #[diagnostic(help("write one trace path per line; lines that begin with # are comments"))]
        EmptyList { list: String } => Unreadable XM0226 {
            title: "list without traces",
            cause: "The list of traces has no line with a path.",
            example: "xmem replay @empty.txt --device t4-16g",
            fix:
                "Write one path per line, for example with `ls runs/*.json.zst > list.txt`. Lines that begin with `#` \
                 are comments.",
        },
        #[error("line {line} of the list `{list}` is not the name of an existing file")]
        #[diagnostic(help(
            "@FILE names a list with one trace path per line; the line is not shown, as the file may be \
             something else. With --literal-paths, `@` has no meaning at the beginning of a name"
        ))]
        NotAList { list: String, line: usize } => Unreadable XM0227 {
            title: "invalid line in a list of traces",
            cause:
                "A line of the list is not the name of an existing file. The message does not quote the line, because \
                 the file may be something else.",
            example: "xmem replay @trace.json --device t4-16g",
            fix: "Correct the line. For a trace whose name begins with `@`, add `--literal-paths`.",
        },
        #[error("cannot read folder `{place}`")]
        #[diagnostic(help("check its permissions"))]
        Folder { place: String, source: Arc<walkdir::Error> } => Unreadable XM0228 {
            title: "unreadable folder",
            cause: "A folder that is searched for traces cannot be read.",
            example: "xmem replay /private/runs --device t4-16g",
            fix: "Check its permissions with `ls -ld FOLDER`, or give the files themselves.",
        },
    }
}
