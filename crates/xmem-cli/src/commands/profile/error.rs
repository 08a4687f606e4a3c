//! Commands that cannot be recorded.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem_tempfiles::FolderError;

failures! {
    /// A command that cannot be recorded as it was given.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ProfileFailure {
        #[error("invalid `--then '{line}'`: {reason}")]
        #[diagnostic(help(
            "--then takes a command without its trace, for example 'replay --device rtx3060-12g'; nothing \
             was run"
        ))]
        Then { line: String, reason: String } => Usage XM0501 {
            title: "invalid `--then`",
            cause:
                "`--then` takes a command of xmem without its trace: replay, inspect or validate. Nothing was run.",
            example: "xmem profile --then 'frobnicate' -- python train.py",
            fix: "Write for example `xmem profile --then 'replay --device t4-16g' -- python train.py`.",
        },
        #[error("`{program}` was read as the name of a GPU")]
        #[diagnostic(help(
            "write `--` before the command: xmem profile --virtual-gpu -- {program} {words}"
        ))]
        ProgramAsDevice { program: String, words: String } => Usage XM0502 {
            title: "program read as the name of a GPU",
            cause: "`--virtual-gpu` takes an optional name, and the word after it is the program.",
            example: "xmem profile --virtual-gpu python train.py",
            fix: "Write `--` before the command: `xmem profile --virtual-gpu -- python train.py`.",
        },
        #[error("`{}` is a script, not a command", shown(script))]
        #[diagnostic(help("name the interpreter: xmem profile -- python {words}"))]
        ScriptWithoutPython { script: PathBuf, words: String } => Usage XM0503 {
            title: "script without an interpreter",
            cause: "The command is a Python script that is not executable.",
            example: "xmem profile -- train.py",
            fix: "Name the interpreter: `xmem profile -- python train.py`.",
        },
        #[error("cannot let the script write to `{}`: there is no such file or folder", shown(path))]
        #[diagnostic(help(
            "make it first, or name the folder that it will be in; `--let-write all` lets the script write everywhere"
        ))]
        LetWrite { path: PathBuf } => Usage XM0504 {
            title: "unknown path after `--let-write`",
            cause: "`--let-write` names a file or folder that does not exist.",
            example: "xmem profile --let-write missing -- python train.py",
            fix: "Create it first with `mkdir`, name the folder above it, or use `--let-write all`.",
        },
        #[error("{problem}")]
        #[diagnostic(help("{advice}"))]
        Ranks { problem: String, advice: &'static str } => Usage XM0505 {
            title: "invalid number of processes",
            cause: "`--ranks`, `--rank` and `--nodes` do not describe a job that can be recorded.",
            example: "xmem profile --ranks 4 --rank 7 -- python train.py",
            fix:
                "Give the number of all processes and a rank below it: `xmem profile --ranks 8 --rank 7 -- python \
                 train.py`.",
        },
        #[error("cannot make a temporary folder")]
        #[diagnostic(help("check TMPDIR and the space of its file system"))]
        TemporaryFolder { source: FolderError } => Unreadable XM0506 {
            title: "no temporary folder",
            cause: "xmem cannot create a private folder for temporary files.",
            example: "TMPDIR=/missing xmem profile -- python train.py",
            fix:
                "Set TMPDIR to a folder that you can write to, with free space: `TMPDIR=/var/tmp xmem profile -- \
                 python train.py`.",
        },
    }
}
