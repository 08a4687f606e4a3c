//! Jobs for which nothing can be looked for.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use xmem_tempfiles::FolderError;

failures! {
    /// A job for which nothing can be looked for.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum FitFailure {
        #[error("the command has two numbers to vary, `{one}` and `{other}`")]
        #[diagnostic(help("write one of them as a number: one at a time is varied"))]
        TwoNumbers { one: String, other: String } => Usage,
        #[error("`{{{name}}}` is {one} and {other} in the same command")]
        #[diagnostic(help("give its value once: {{{name}={one}}}, and {{{name}}} elsewhere"))]
        TwoValues { name: String, one: u64, other: u64 } => Usage,
        #[error("--range is about `{given}`, which the command does not have")]
        #[diagnostic(help("write {{{given}}} where the command has the number, for example --batch-size {{{given}=8}}"))]
        NoSuchNumber { given: String } => Usage,
        #[error("the value of `{name}`, {value}, is not in its range")]
        #[diagnostic(help("--range {name}=LOW..HIGH gives other values"))]
        OutOfRange { name: String, value: u64 } => Usage,
        #[error("--law needs a number in the command")]
        #[diagnostic(help("write {{batch=8}} where the command has the number, for example --batch-size {{batch=8}}"))]
        LawWithoutNumber => Usage,
        #[error("--law is for one device, and there are {count}")]
        #[diagnostic(help("run the command once for each device, with a file for each"))]
        LawOfSeveral { count: usize } => Usage,
        #[error("`{given}` is not a setting that can be varied")]
        #[diagnostic(help("write --set dataloader.batch_size={{batch=8}}, with the batch size of the job as it is"))]
        Setting { given: String } => Usage,
        #[error("the batch size cannot be set: {reason}")]
        #[diagnostic(help("if the script has an option for it, write {{{name}=8}} there"))]
        NotSet { name: String, reason: String } => Unreadable,
        #[error("`{given}` is not a number of processes")]
        #[diagnostic(help("write --ranks 8, or --ranks {{gpus=8}} for the fewest with which the job fits"))]
        Ranks { given: String } => Usage,
        #[error("{ranks} processes cannot be spread evenly over {nodes} machines with up to 64 GPUs each")]
        #[diagnostic(help("--nodes is the number of machines"))]
        Nodes { ranks: u64, nodes: u32 } => Usage,
        #[error("--law cannot vary the number of processes")]
        #[diagnostic(help("give --ranks a number, and write {{batch=8}} where the command has one"))]
        LawOfRanks => Usage,
        #[error("--set and the command have a number each")]
        #[diagnostic(help("write one of them as a number: one at a time is varied"))]
        SetAndNumber => Usage,
        #[error("cannot make a folder for the recordings")]
        #[diagnostic(help("check TMPDIR and the space of its file system"))]
        TemporaryFolder { source: FolderError } => Unreadable,
        #[error("cannot make the folder `{}`", shown(path))]
        #[diagnostic(help("--keep needs a folder that can be written to"))]
        Keep { path: PathBuf, source: io::Error } => Usage,
        #[error("the recording of the job as it is cannot be read: {reason}")]
        #[diagnostic(help("record it with `xmem profile`, which says more"))]
        Base { reason: String } => Unreadable,
    }
}
