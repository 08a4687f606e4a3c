//! Errors as the user sees them: what is wrong, where, and what to do next.

mod conf;
mod profile;

pub(crate) use profile::print_cut_short;

use crate::exit::Exit;
use conf::WrongAllocator;
use miette::Diagnostic;
use profile::{Blame, Unrecorded};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use xmem::{
    AllocatorError, DeviceFileError, EstimateError, Misuse, Origin, ReadError, StepError,
    UnknownDevice,
};
use xmem_eval::{RerunError, SnapshotError, ValidateError};
use xmem_report::json::OperationsError;
use xmem_report::lines::BackError;
use xmem_report::text;

/// Why the command could not do what was asked.
#[derive(Debug, Error, Diagnostic)]
pub(crate) enum Complaint {
    #[error("no device was chosen, so there is nothing to judge the job against")]
    #[diagnostic(help(
        "--device rtx3060-12g   a known GPU (`xmem devices` lists them)\n\
         --capacity 24GiB       any GPU with this much memory\n\
         --device-file my.toml  a GPU that you describe"
    ))]
    NoDevice,
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(Box<UnknownName>),
    #[error("cannot read the device file `{}`", path.display())]
    #[diagnostic(help("check the path, and that the file may be read"))]
    DeviceFileIo { path: PathBuf, source: std::io::Error },
    #[error("`{}` does not describe a device", path.display())]
    #[diagnostic(help(
        "`xmem devices --format json` shows what a description holds; the guide has an example"
    ))]
    DeviceFile { path: PathBuf, source: Box<DeviceFileError> },
    #[error("there is no cuDNN at `{}`", path.display())]
    #[diagnostic(help(
        "--cudnn takes the path of libcudnn.so.9, of the folder it is in, or of a Python environment \
         with PyTorch for CUDA; `--cudnn model` does without"
    ))]
    NoCudnn { path: PathBuf },
    #[error("cuDNN at `{}` cannot be asked: {reason}", path.display())]
    #[diagnostic(help("xmem needs cuDNN 9.8 or newer; `--cudnn model` does without"))]
    Cudnn { path: PathBuf, reason: String },
    #[error("the question to cuDNN failed: {reason}")]
    CudnnWorker { reason: String },
    #[error("there is no rule `{name}`")]
    #[diagnostic(help("the rules are: {known}"))]
    UnknownRule { name: String, known: String },
    #[error("there is no recording here to take addresses from")]
    #[diagnostic(help(
        "`--address-order recorded` is for `xmem snapshot replay`; choose \
         driver, asc or desc"
    ))]
    NothingRecorded,
    #[error(transparent)]
    #[diagnostic(transparent)]
    Allocator(Box<WrongAllocator>),
    #[error("standard input can be read only once, but `-` was given {count} times")]
    #[diagnostic(help("give `-` once, or name files"))]
    StdinTwice { count: usize },
    #[error("a snapshot shows one run, but {count} {of} were given")]
    #[diagnostic(help("run the command once for each, with a --snapshot file of its own"))]
    SnapshotOfSeveral { count: usize, of: &'static str },
    #[error("there is no trace in the folder `{}`", folder.display())]
    #[diagnostic(help(
        "traces are found by their names, *.json, *.json.gz and *.json.zst, in the folder and all \
         below; a pattern like '{}/**/*.trace' finds others",
        folder.display()
    ))]
    EmptyFolder { folder: PathBuf },
    #[error("no file matches `{pattern}`")]
    #[diagnostic(help(
        "* and ? stand for anything but /, ** for any folders; a folder itself is given by its name"
    ))]
    NoMatch { pattern: String },
    #[error("`{pattern}` is no pattern, and no file bears that name")]
    Pattern { pattern: String, source: globset::Error },
    #[error("cannot read the list of traces `{}`", path.display())]
    #[diagnostic(help("@FILE names a file with the path of a trace on each line"))]
    List { path: PathBuf, source: std::io::Error },
    #[error("the list `{list}` names no trace")]
    #[diagnostic(help(
        "it takes the path of a trace on each line; lines that begin with # are skipped"
    ))]
    EmptyList { list: String },
    #[error("cannot look into `{place}`")]
    #[diagnostic(help("check that it may be read"))]
    Folder { place: String, source: Arc<walkdir::Error> },
    #[error("xmem made a mistake with `{trace}` and gave it up: {told}")]
    #[diagnostic(help("please report it, if possible with the trace"))]
    Panic { trace: String, told: String },
    #[error("--skip-done goes on with lines, and this form of the answer has none")]
    #[diagnostic(help("add --format jsonl or --format csv"))]
    SkipDoneForm,
    #[error("--skip-done cannot tell whether standard input is what was answered before")]
    #[diagnostic(help("name files"))]
    SkipDoneStdin,
    #[error("--skip-done cannot go on with `{}`", path.display())]
    #[diagnostic(help(
        "nothing was changed there; give another --output, or leave --skip-done out to begin anew"
    ))]
    SkipDone { path: PathBuf, source: Box<BackError> },
    #[error("cannot write on in `{}`", path.display())]
    #[diagnostic(help(
        "the lines that are there stay: once there is room and it may be written, --skip-done goes \
         on with them"
    ))]
    Append { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("cannot estimate `{trace}`")]
    Estimate { trace: String, source: EstimateError },
    #[error("cannot read `{}`", path.display())]
    #[diagnostic(help(
        "give the path of a file that may be read and is complete, or `-` for standard input"
    ))]
    Input { path: PathBuf, source: std::io::Error },
    #[error("{input} is empty")]
    EmptyInput { input: String },
    #[error("{input} is not a list of operations")]
    #[diagnostic(help("`xmem simulate --help` shows what a list looks like"))]
    Operations { input: String, source: OperationsError },
    #[error("{input} asks for what cannot be simulated")]
    Simulation { input: String, source: AllocatorError },
    #[error("operation {index} of {input}, {operation}, cannot be carried out")]
    Step { index: usize, operation: String, input: String, source: Misuse },
    #[error("--segments says what json and jsonl list, and the answer is text")]
    #[diagnostic(help("add --format json, or leave --segments out"))]
    SegmentsAsText,
    #[error("`--then '{line}'` cannot be done with the trace: {reason}")]
    #[diagnostic(help(
        "--then takes a command like 'replay --device rtx3060-12g', without the trace; nothing was \
         run yet"
    ))]
    Then { line: String, reason: String },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unrecorded(Box<Unrecorded>),
    #[error("cannot read the snapshot `{}`", path.display())]
    Snapshot { path: PathBuf, source: Box<SnapshotError> },
    #[error("cannot run `{snapshot}` again")]
    Rerun { snapshot: String, source: Box<RerunError> },
    #[error("cannot write `{}`", path.display())]
    #[diagnostic(help(
        "nothing was changed there; check that the directory exists, may be written and has room"
    ))]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot write to standard output")]
    Stdout { source: std::io::Error },
}

/// A device name that is not known.
#[derive(Debug, Error, Diagnostic)]
#[error("unknown device `{name}`{}", nearest.as_ref().map_or_else(String::new, |n| format!(": did you mean `{n}`?")))]
#[diagnostic(help(
    "`xmem devices` lists the known ones, --device-file describes another, and --capacity 24GiB \
     stands for any GPU of that size"
))]
pub(crate) struct UnknownName {
    name: String,
    nearest: Option<&'static str>,
}

impl From<UnknownDevice> for Complaint {
    fn from(unknown: UnknownDevice) -> Self {
        let UnknownDevice { name, suggestion } = unknown;
        Self::Device(Box::new(UnknownName { name, nearest: suggestion }))
    }
}

impl From<AllocatorError> for Complaint {
    fn from(error: AllocatorError) -> Self {
        Self::Allocator(Box::new(error.into()))
    }
}

impl Complaint {
    /// A failed estimate of `trace`.
    pub(crate) fn estimate(trace: &str, error: EstimateError) -> Self {
        match error {
            EstimateError::Read(read) => Self::Read(read),
            EstimateError::Allocator(error) => {
                Self::Allocator(Box::new(WrongAllocator::with(trace, error)))
            }
            source => Self::Estimate { trace: trace.to_owned(), source },
        }
    }

    /// An allocator that cannot be simulated for `input`: the caller's mistake, or the input's.
    pub(crate) fn simulation(input: &str, error: AllocatorError) -> Self {
        match error {
            source @ AllocatorError::Conf { from: Origin::Input, .. } => {
                Self::Simulation { input: input.to_owned(), source }
            }
            other => other.into(),
        }
    }

    /// An operation of `input` that cannot be carried out.
    pub(crate) fn step(input: &str, error: StepError) -> Self {
        let operation = text::operation(&error.operation);
        Self::Step { index: error.index, operation, input: input.to_owned(), source: error.misuse }
    }

    /// An estimate that cannot be held against `snapshot`.
    pub(crate) fn validate(snapshot: &str, error: ValidateError) -> Self {
        match error {
            ValidateError::Allocator(error) => error.into(),
            ValidateError::Recording(source) => {
                Self::Rerun { snapshot: snapshot.to_owned(), source: Box::new(source) }
            }
        }
    }

    /// The exit code it leads to.
    fn exit(&self) -> Exit {
        match self {
            Self::NoDevice
            | Self::Device(_)
            | Self::DeviceFileIo { .. }
            | Self::DeviceFile { .. }
            | Self::UnknownRule { .. }
            | Self::NoCudnn { .. }
            | Self::Cudnn { .. }
            | Self::NothingRecorded
            | Self::SegmentsAsText
            | Self::Allocator(_)
            | Self::StdinTwice { .. }
            | Self::SnapshotOfSeveral { .. }
            | Self::Pattern { .. }
            | Self::SkipDoneForm
            | Self::SkipDoneStdin
            | Self::Then { .. }
            | Self::Estimate { .. } => Exit::Usage,
            Self::Unrecorded(unrecorded) => match unrecorded.blame {
                Blame::Usage => Exit::Usage,
                Blame::Run => Exit::Unreadable,
            },
            Self::Rerun { source, .. } => match **source {
                RerunError::Setup(_) => Exit::Usage,
                _ => Exit::Unreadable,
            },
            Self::Read(_)
            | Self::CudnnWorker { .. }
            | Self::Input { .. }
            | Self::EmptyInput { .. }
            | Self::EmptyFolder { .. }
            | Self::NoMatch { .. }
            | Self::List { .. }
            | Self::EmptyList { .. }
            | Self::Folder { .. }
            | Self::Panic { .. }
            | Self::SkipDone { .. }
            | Self::Append { .. }
            | Self::Operations { .. }
            | Self::Simulation { .. }
            | Self::Step { .. }
            | Self::Snapshot { .. }
            | Self::Write { .. }
            | Self::Stdout { .. } => Exit::Unreadable,
        }
    }

    /// Prints it on standard error; the exit code it leads to.
    pub(crate) fn print(self) -> Exit {
        let exit = self.exit();
        let report = miette::Report::new(self);
        // Nothing can be done when standard error itself is closed.
        let _ = writeln!(std::io::stderr(), "{report:?}");
        exit
    }
}
