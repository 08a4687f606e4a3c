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
        Then { line: String, reason: String } => Usage,
        #[error("`{program}` was read as the name of a GPU")]
        #[diagnostic(help(
            "write `--` before the command: xmem profile --virtual-gpu -- {program} {words}"
        ))]
        ProgramAsDevice { program: String, words: String } => Usage,
        #[error("`{}` is a script, not a command", shown(script))]
        #[diagnostic(help("name the interpreter: xmem profile -- python {words}"))]
        ScriptWithoutPython { script: PathBuf, words: String } => Usage,
        #[error("cannot let the script write to `{}`: there is no such file or folder", shown(path))]
        #[diagnostic(help(
            "make it first, or name the folder that it will be in; `--let-write all` lets the script write everywhere"
        ))]
        LetWrite { path: PathBuf } => Usage,
        #[error("{problem}")]
        #[diagnostic(help("{advice}"))]
        Ranks { problem: String, advice: &'static str } => Usage,
        #[error("cannot make a temporary folder")]
        #[diagnostic(help("check TMPDIR and the space of its file system"))]
        TemporaryFolder { source: FolderError } => Unreadable,
    }
}
