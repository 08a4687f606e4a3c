//! Questions that `xmem replay` does not answer.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem_report::lines::ReadLinesError;

failures! {
    /// A question that is not answered, or answers that cannot be kept.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ReplayFailure {
        #[error("--snapshot writes a single run, but {count} {of} were given")]
        #[diagnostic(help("run the command once for each, with a different --snapshot file"))]
        SnapshotOfSeveral { count: usize, of: &'static str } => Usage XM0411 {
            title: "one snapshot for several runs",
            cause: "`--snapshot` writes the predicted memory snapshot of one run, and the command has several.",
            example: "xmem replay a.json b.json --device t4-16g --snapshot out.pickle",
            fix: "Run `xmem replay` once for each, with a different file after `--snapshot`.",
        },
        #[error("--snapshot goes with the answer about one trace, and --format parquet writes a table")]
        #[diagnostic(help("run the command once for each, or choose --format json"))]
        SnapshotWithParquet => Usage XM0411,
        #[error("--vary answers one question about one trace: {problem}")]
        #[diagnostic(help("{advice}"))]
        Vary { problem: String, advice: &'static str } => Usage XM0412 {
            title: "`--vary` with several questions",
            cause: "`--vary` answers about one trace on one device with one set of options.",
            example: "xmem replay a.json b.json --device t4-16g --vary batch=1..64",
            fix: "Run `xmem replay TRACE --device NAME --vary batch=1..64` for each trace and device.",
        },
        #[error("--tune answers one question about one trace, as text or JSON")]
        #[diagnostic(help("give one trace, one device and one --alloc-conf, and --format text or json"))]
        TuneOfSeveral => Usage XM0413 {
            title: "`--tune` with several questions",
            cause: "`--tune` searches allocator options for one trace on one device, and prints text or JSON.",
            example: "xmem replay a.json b.json --device t4-16g --tune",
            fix: "Run `xmem replay TRACE --device NAME --tune` for each trace and device.",
        },
        #[error("--skip-done needs --format jsonl, csv or parquet")]
        #[diagnostic(help("add --format jsonl, --format csv or --format parquet"))]
        SkipDoneForm => Usage XM0414 {
            title: "`--skip-done` with an unsuitable input or output",
            cause:
                "`--skip-done` finds earlier answers by the names of traces in a file of lines. It needs `--format \
                 jsonl` or `csv`, and traces with names.",
            example: "xmem replay runs --device t4-16g --skip-done -o answers.json",
            fix: "Run `xmem replay runs --device NAME --format jsonl -o answers.jsonl --skip-done`.",
        },
        #[error("--skip-done cannot be used with standard input")]
        #[diagnostic(help("give file names: an answer is found again by the name of its trace"))]
        SkipDoneStdin => Usage XM0414,
        #[error("--skip-done cannot continue `{}`", shown(path))]
        #[diagnostic(help(
            "the file was not changed; give another --output, or remove --skip-done to start over"
        ))]
        SkipDone { path: PathBuf, source: Box<ReadLinesError> } => Unreadable XM0415 {
            title: "earlier answers that cannot be continued",
            cause:
                "The file of `--output` exists, and is not a list of answers of this format and version. It was not \
                 changed.",
            example: "xmem replay runs --device t4-16g --format csv -o notes.txt --skip-done",
            fix: "Give another file after `--output`, or remove `--skip-done` to start over.",
        },
        #[error("cannot append to `{}`", shown(path))]
        #[diagnostic(help(
            "the lines already written are kept: check disk space and permissions, then continue with \
             --skip-done"
        ))]
        Append { path: PathBuf, source: std::io::Error } => Unreadable XM0416 {
            title: "answers that cannot be appended",
            cause:
                "A line could not be written, for example because the file system is full. The lines before it are \
                 complete.",
            example: "xmem replay runs --device t4-16g --format jsonl -o /full/answers.jsonl",
            fix: "Free some space, then run the same command with `--skip-done`, which continues.",
        },
        #[error("--format parquet needs a folder or an address for its files")]
        #[diagnostic(help("add one, for example -o answers or -o s3://BUCKET/answers"))]
        NoFolder => Usage XM0417 {
            title: "wrong place for the answers of a format",
            cause:
                "`--format parquet` writes files into a folder, or objects below an address. The other formats write one \
                 file.",
            example: "xmem replay runs --device t4-16g --format parquet",
            fix:
                "Run `xmem replay runs --device NAME --format parquet -o answers`, or name a file with another format: \
                 `--format jsonl -o answers.jsonl`.",
        },
        #[error("`{}` is a file, and --format parquet writes several into a folder", shown(path))]
        #[diagnostic(help("name a folder; it is made if it does not exist"))]
        FileForParts { path: PathBuf } => Usage XM0417,
        #[error("`{address}` is an address, and only --format parquet writes to an object store")]
        #[diagnostic(help("add --format parquet, or name a file"))]
        AddressForLines { address: String } => Usage XM0417,
        #[error("`{place}` has answers of an earlier run")]
        #[diagnostic(help("add --skip-done to continue it, or name another folder"))]
        EarlierParts { place: String } => Usage XM0418 {
            title: "answers of an earlier run",
            cause:
                "The folder or address of `--output` has Parquet files of the same part of the traces. With new ones \
                 beside them, each answer would be there twice.",
            example: "xmem replay runs --device t4-16g --format parquet -o answers",
            fix: "Add `--skip-done` to continue the earlier run, or name another folder after `--output`.",
        },
        #[error("--skip-done cannot continue `{part}`: {problem}")]
        #[diagnostic(help("nothing was changed; give another --output, or remove the file"))]
        ForeignPart { part: String, problem: String } => Unreadable XM0415,
        #[error("cannot use `{}`", shown(path))]
        #[diagnostic(help(
            "the files already written are complete: check disk space and permissions, then continue with --skip-done"
        ))]
        Parts { path: PathBuf, source: std::io::Error } => Unreadable XM0416,
    }
}
