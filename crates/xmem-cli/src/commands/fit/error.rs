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
        TwoNumbers { one: String, other: String } => Usage XM0601 {
            title: "several numbers to vary",
            cause: "`xmem fit` varies one number at a time, and the command has several.",
            example: "xmem fit -d t4-16g -- python train.py --batch {batch=8} --width {width=64}",
            fix:
                "Write all but one as plain numbers: `xmem fit -d t4-16g -- python train.py --batch {batch=8} --width \
                 64`.",
        },
        #[error("`{{{name}}}` is {one} and {other} in the same command")]
        #[diagnostic(help("give its value once: {{{name}={one}}}, and {{{name}}} elsewhere"))]
        TwoValues { name: String, one: u64, other: u64 } => Usage XM0602 {
            title: "two values of one number",
            cause: "The same name has different values in one command.",
            example: "xmem fit -d t4-16g -- python train.py --batch {batch=8} --eval-batch {batch=4}",
            fix: "Give the value once: `{batch=8}` at one place, and `{batch}` at the others.",
        },
        #[error("--range is about `{given}`, which the command does not have")]
        #[diagnostic(help("write {{{given}}} where the command has the number, for example --batch-size {{{given}=8}}"))]
        NoSuchNumber { given: String } => Usage XM0603 {
            title: "range of an unknown number",
            cause: "`--range` names a number that the command does not have.",
            example: "xmem fit -d t4-16g --range batch=1..64 -- python train.py",
            fix:
                "Mark the number in the command: `xmem fit -d t4-16g --range batch=1..64 -- python train.py --batch \
                 {batch=8}`.",
        },
        #[error("the value of `{name}`, {value}, is not in its range")]
        #[diagnostic(help("--range {name}=LOW..HIGH gives other values"))]
        OutOfRange { name: String, value: u64 } => Usage XM0604 {
            title: "value outside its range",
            cause: "The value in the command is outside `--range`.",
            example: "xmem fit -d t4-16g --range batch=16..64 -- python train.py --batch {batch=8}",
            fix: "Widen the range, for example `--range batch=1..64`, or change the value.",
        },
        #[error("--law needs a number in the command")]
        #[diagnostic(help("write {{batch=8}} where the command has the number, for example --batch-size {{batch=8}}"))]
        LawWithoutNumber => Usage XM0605 {
            title: "law without a number to vary",
            cause:
                "`--law` describes the memory as a function of one number of the command, other than the number of \
                 processes.",
            example: "xmem fit -d t4-16g --law law.json -- python train.py",
            fix: "Mark the number: `xmem fit -d t4-16g --law law.json -- python train.py --batch {batch=8}`.",
        },
        #[error("--law is for one device, and there are {count}")]
        #[diagnostic(help("run the command once for each device, with a file for each"))]
        LawOfSeveral { count: usize } => Usage XM0606 {
            title: "law for several devices",
            cause: "A law holds for one device.",
            example: "xmem fit -d t4-16g -d a100-40g --law law.json -- python train.py --batch {batch=8}",
            fix: "Run `xmem fit -d NAME --law FILE -- COMMAND` once for each device.",
        },
        #[error("`{given}` is not a setting that can be varied")]
        #[diagnostic(help("write --set dataloader.batch_size={{batch=8}}, with the batch size of the job as it is"))]
        Setting { given: String } => Usage XM0607 {
            title: "setting that cannot be varied",
            cause: "`--set` knows the batch size of DataLoaders only.",
            example: "xmem fit -d t4-16g --set width={width=8} -- python train.py",
            fix: "Write `--set dataloader.batch_size={batch=8}`, or mark the number in the command.",
        },
        #[error("the batch size cannot be set: {reason}")]
        #[diagnostic(help("if the script has an option for it, write {{{name}=8}} there"))]
        NotSet { name: String, reason: String } => Unreadable XM0608 {
            title: "batch size that cannot be set",
            cause: "The script has no DataLoader whose batch size can be changed.",
            example: "xmem fit -d t4-16g --set dataloader.batch_size={batch=8} -- python train.py",
            fix:
                "If the script has an option for the batch size, mark it: `xmem fit -d t4-16g -- python train.py \
                 --batch {batch=8}`.",
        },
        #[error("`{given}` is not a number of processes")]
        #[diagnostic(help("write --ranks 8, or --ranks {{gpus=8}} for the fewest with which the job fits"))]
        Ranks { given: String } => Usage XM0609 {
            title: "invalid number of processes to fit",
            cause: "`--ranks` is not a number, or the processes cannot be spread evenly over `--nodes` machines.",
            example: "xmem fit -d t4-16g --ranks many -- python train.py",
            fix: "Write `--ranks 8`, or `--ranks {gpus=8}` for the fewest with which the job fits.",
        },
        #[error("{ranks} processes cannot be spread evenly over {nodes} machines with up to 64 GPUs each")]
        #[diagnostic(help("--nodes is the number of machines"))]
        Nodes { ranks: u64, nodes: u32 } => Usage XM0609,
        #[error("--law cannot vary the number of processes")]
        #[diagnostic(help("give --ranks a number, and write {{batch=8}} where the command has one"))]
        LawOfRanks => Usage XM0605,
        #[error("--set and the command have a number each")]
        #[diagnostic(help("write one of them as a number: one at a time is varied"))]
        SetAndNumber => Usage XM0601,
        #[error("cannot make a folder for the recordings")]
        #[diagnostic(help("check TMPDIR and the space of its file system"))]
        TemporaryFolder { source: FolderError } => Unreadable XM0506,
        #[error("cannot make the folder `{}`", shown(path))]
        #[diagnostic(help("--keep needs a folder that can be written to"))]
        Keep { path: PathBuf, source: io::Error } => Usage XM0610 {
            title: "no folder for the recordings",
            cause: "The folder of `--keep` cannot be created.",
            example: "xmem fit -d t4-16g --keep /proc/recordings -- python train.py",
            fix: "Name a folder that you can write to, for example `--keep recordings`.",
        },
        #[error("the recording of the job as it is cannot be read: {reason}")]
        #[diagnostic(help("record it with `xmem profile`, which says more"))]
        Base { reason: String } => Unreadable XM0611 {
            title: "unreadable recording of the job as it is",
            cause: "The job was recorded without changes first, and that recording gives no answer.",
            example: "xmem fit -d t4-16g -- python broken.py",
            fix: "Run `xmem profile -- COMMAND` to see the reason.",
        },
    }
}
