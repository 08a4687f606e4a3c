//! Errors as the user sees them: the problem, its place, and what to do next.

mod address_space;
mod alloc_conf;
mod recording;
mod shown;

pub(crate) use recording::{print_cut_short, unshadow};

use crate::exit::Exit;
use crate::guard::Panicked;
use crate::terminal::{self, shown};
use alloc_conf::AllocatorOptionsError;
use miette::Diagnostic;
use recording::{Fault, RecordingFailed};
use shown::Shown;
use std::path::PathBuf;
use std::sync::Arc;
use textwrap::WordSplitter;
use thiserror::Error;
use xmem::predict::{AllocatorError, Origin, StepError};
use xmem::profiles::{DeviceFileError, DeviceNameError};
use xmem::simulator::Misuse;
use xmem::trace::ReadError;
use xmem::types::ExceededLimit;
use xmem::{EstimateError, InputError};
use xmem_eval::{RerunError, SnapshotError, ValidateError};
use xmem_report::json::OperationsError;
use xmem_report::lines::ReadLinesError;
use xmem_report::text;
use xmem_serve::ServeError;

/// An error that ends a command, or the work on one trace.
#[derive(Debug, Error, Diagnostic)]
pub(crate) enum CliError {
    #[error("no device given")]
    #[diagnostic(help(
        "add one of:\n\
         --device rtx3060-12g   a known GPU (`xmem devices` lists them)\n\
         --capacity 24GiB       any GPU with this much memory\n\
         --device-file my.toml  a GPU described in a file"
    ))]
    NoDevice,
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(Box<DeviceName>),
    #[error("cannot make a temporary folder")]
    #[diagnostic(help("check TMPDIR and the space of its file system"))]
    Temporary { source: xmem_tempfiles::FolderError },
    #[error("cannot read the device file `{}`", shown(path))]
    #[diagnostic(help("check the path and the permissions of the file"))]
    DeviceFileIo { path: PathBuf, source: std::io::Error },
    #[error("invalid device file `{}`", shown(path))]
    #[diagnostic(help(
        "`xmem devices --format json` shows the fields of a device; the devices page of the guide has \
         an example"
    ))]
    DeviceFile { path: PathBuf, source: Box<DeviceFileError> },
    #[error("no cuDNN library found at `{}`", shown(path))]
    #[diagnostic(help(
        "--cudnn takes the path of libcudnn.so.9, of the folder it is in, or of a Python environment \
         with PyTorch for CUDA; `--cudnn model` needs no library"
    ))]
    NoCudnn { path: PathBuf },
    #[error("cannot query cuDNN at `{}`: {reason}", shown(path))]
    #[diagnostic(help("xmem needs cuDNN 9.8 or newer; `--cudnn model` needs no library"))]
    Cudnn { path: PathBuf, reason: String },
    #[error("cuDNN at `{}` is not loaded: {reason}", shown(path))]
    #[diagnostic(help("`--cudnn model` needs no library"))]
    CudnnRefused { path: PathBuf, reason: String },
    #[error("query to cuDNN failed: {reason}")]
    CudnnWorker { reason: String },
    #[error("unknown rule `{name}`")]
    #[diagnostic(help("the known rules are: {known}"))]
    UnknownRule { name: String, known: String },
    #[error("no recorded addresses: the input is not a memory snapshot")]
    #[diagnostic(help(
        "`--address-order recorded` works only with `xmem snapshot replay`; use driver, asc or desc"
    ))]
    NothingRecorded,
    #[error(transparent)]
    #[diagnostic(transparent)]
    Allocator(Box<AllocatorOptionsError>),
    #[error("standard input can be read only once, but `-` was given {count} times")]
    #[diagnostic(help("give `-` once, or give file names"))]
    StdinTwice { count: usize },
    #[error("--snapshot writes a single run, but {count} {of} were given")]
    #[diagnostic(help("run the command once for each, with a different --snapshot file"))]
    SnapshotOfSeveral { count: usize, of: &'static str },
    #[error("this format shows a single run, but {count} were given")]
    #[diagnostic(help("--format html shows several, and compares them"))]
    ReportOfSeveral { count: usize },
    #[error("the page is not for a terminal")]
    #[diagnostic(help("name a file: -o report.html, with --open to see it at once"))]
    PageToTerminal,
    #[error("the {format} file is not for a terminal")]
    #[diagnostic(help("name a file: -o {file}"))]
    FileToTerminal { format: &'static str, file: &'static str },
    #[error("no format of `xmem report` has the ending of `{}`", shown(path))]
    #[diagnostic(help(
        "use .html, .svg, .folded, .pftrace, .speedscope.json or .parquet (which pandas, polars and DuckDB read), or \
         name the format: --format html"
    ))]
    EndingOfReport { path: PathBuf },
    #[error("no traces found in folder `{}`", shown(folder))]
    #[diagnostic(help(
        "a folder is searched recursively for *.json, *.json.gz and *.json.zst; for other names use \
         a glob pattern, for example '{}/**/*.trace'",
        shown(folder)
    ))]
    EmptyFolder { folder: PathBuf },
    #[error("no file matches `{pattern}`")]
    #[diagnostic(help(
        "* and ? match anything except /, ** matches any number of folders; to search a folder, give \
         its name"
    ))]
    NoMatch { pattern: String },
    #[error("`{pattern}` is neither an existing file nor a valid glob pattern")]
    Pattern { pattern: String, source: globset::Error },
    #[error("cannot read the list of traces `{}`", shown(path))]
    #[diagnostic(help("@FILE reads trace paths from FILE, one per line"))]
    List { path: PathBuf, source: std::io::Error },
    #[error("the list `{list}` contains no traces")]
    #[diagnostic(help("write one trace path per line; lines that begin with # are comments"))]
    EmptyList { list: String },
    #[error("cannot read folder `{place}`")]
    #[diagnostic(help("check its permissions"))]
    Folder { place: String, source: Arc<walkdir::Error> },
    #[error("internal error{}: {message}", of.as_ref().map_or_else(String::new, |of| format!(" while processing `{of}`")))]
    #[diagnostic(help(
        "this is a bug in xmem: please report it with the output of `xmem --version`, the command line \
         and, if possible, the input; RUST_BACKTRACE=1 prints where it happened"
    ))]
    Panic { of: Option<String>, message: String },
    #[error("--vary answers one question about one trace: {problem}")]
    #[diagnostic(help("{advice}"))]
    Vary { problem: String, advice: &'static str },
    #[error("--skip-done needs --format jsonl or csv")]
    #[diagnostic(help("add --format jsonl or --format csv"))]
    SkipDoneForm,
    #[error("--skip-done cannot be used with standard input")]
    #[diagnostic(help("give file names: an answer is found again by the name of its trace"))]
    SkipDoneStdin,
    #[error("--skip-done cannot continue `{}`", shown(path))]
    #[diagnostic(help(
        "the file was not changed; give another --output, or remove --skip-done to start over"
    ))]
    SkipDone { path: PathBuf, source: Box<ReadLinesError> },
    #[error("cannot append to `{}`", shown(path))]
    #[diagnostic(help(
        "the lines already written are kept: check disk space and permissions, then continue with \
         --skip-done"
    ))]
    Append { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Read(ReadError),
    #[error("cannot estimate `{trace}`")]
    Estimate { trace: String, source: EstimateError },
    #[error("cannot read `{}`", shown(path))]
    #[diagnostic(help("give the path of a complete, readable file, or `-` for standard input"))]
    Input { path: PathBuf, source: std::io::Error },
    #[error("{input} {limit}")]
    #[diagnostic(help("{advice}"))]
    TooLarge { input: String, limit: ExceededLimit, advice: &'static str },
    #[error("{error}")]
    #[diagnostic(help(
        "if the file is genuine, allow more with --max-input, for example --max-input 200GiB"
    ))]
    ReadLimit { error: ReadError },
    #[error("`{option} {output}` would replace the input {input}")]
    #[diagnostic(help("give another file name; nothing was read or written"))]
    OutputIsInput { option: &'static str, output: String, input: String },
    #[error("`{option} {output}` would replace the file of {first}")]
    #[diagnostic(help("give two different file names; nothing was read or written"))]
    OutputTwice { option: &'static str, output: String, first: &'static str },
    #[error("line {line} of the list `{list}` is not the name of an existing file")]
    #[diagnostic(help(
        "@FILE names a list with one trace path per line; the line is not shown, as the file may be \
         something else. With --literal-paths, `@` has no meaning at the beginning of a name"
    ))]
    NotAList { list: String, line: usize },
    #[error("{input} is empty")]
    EmptyInput { input: String },
    #[error("cannot show {trace}: standard output is not a terminal that text can be moved on")]
    #[diagnostic(help(
        "`xmem look` needs a terminal; `xmem replay` prints the answer as text, `xmem report` writes pages and \
         pictures"
    ))]
    NoTerminal { trace: String },
    #[error("cannot read {input} as an answer")]
    #[diagnostic(help(
        "give a trace, a memory snapshot, or one answer that `xmem replay --format json` of this version wrote"
    ))]
    Answer { input: String, source: Box<xmem_report::json::AnswerError> },
    #[error("{input} is an answer, which has no bytes by {key}")]
    #[diagnostic(help(
        "an answer in JSON has the bytes of roles only: use --by role, or give the traces (or snapshots) \
         themselves, with --device"
    ))]
    DiffOfAnswer { input: String, key: &'static str },
    #[error("{input} is not a list of operations")]
    #[diagnostic(help("`xmem simulate --help` shows the format of a list"))]
    Operations { input: String, source: OperationsError },
    #[error("{input} has allocator options that cannot be simulated")]
    Simulation { input: String, source: AllocatorError },
    #[error("operation {index} of {input}, {operation}, is invalid")]
    Step { index: usize, operation: String, input: String, source: Misuse },
    #[error("--segments needs --format json or jsonl")]
    #[diagnostic(help("add --format json, or remove --segments"))]
    SegmentsAsText,
    #[error("invalid `--then '{line}'`: {reason}")]
    #[diagnostic(help(
        "--then takes a command without its trace, for example 'replay --device rtx3060-12g'; nothing \
         was run"
    ))]
    Then { line: String, reason: String },
    #[error("`{program}` is taken for the name of a GPU")]
    #[diagnostic(help(
        "write `--` before the command: xmem profile --virtual-gpu -- {program} {words}"
    ))]
    ProgramAsDevice { program: String, words: String },
    #[error("`{}` is a script, not a command", shown(script))]
    #[diagnostic(help("name the interpreter: xmem profile -- python {words}"))]
    ScriptWithoutPython { script: PathBuf, words: String },
    #[error("cannot let the script write to `{}`: there is no such file or folder", shown(path))]
    #[diagnostic(help(
        "make it first, or name the folder that it will be in; `--let-write all` lets the script write everywhere"
    ))]
    LetWrite { path: PathBuf },
    #[error("{problem}")]
    #[diagnostic(help("{advice}"))]
    Ranks { problem: String, advice: &'static str },
    #[error(transparent)]
    #[diagnostic(transparent)]
    RecordingFailed(Box<RecordingFailed>),
    #[error("cannot read the snapshot `{}`", shown(path))]
    Snapshot { path: PathBuf, source: Box<SnapshotError> },
    #[error("cannot replay `{snapshot}`")]
    Rerun { snapshot: String, source: Box<RerunError> },
    #[error("cannot write `{}`", shown(path))]
    #[diagnostic(help(
        "the file was not changed; check that the directory exists, is writable and has free space"
    ))]
    Write { path: PathBuf, source: std::io::Error },
    #[error("no trace given")]
    #[diagnostic(help(
        "give the path of a trace, or --slurm-job with a script that has a line `#XMEM --trace FILE`"
    ))]
    NoTrace,
    #[error("the job script `{}` names no trace", shown(path))]
    #[diagnostic(help(
        "add a line `#XMEM --trace FILE` before its first command, or give the trace as an argument"
    ))]
    NoTraceInScript { path: PathBuf },
    #[error(transparent)]
    Request(xmem_gate::ParseRequestError),
    #[error("cannot read the submission")]
    Submission(#[source] xmem_gate::SlurmError),
    #[error("cannot read the job script `{}`", shown(path))]
    Script { path: PathBuf, source: xmem_gate::SlurmError },
    #[error("it is not known on which GPU the job would run")]
    #[diagnostic(help(
        "{}; `--device a100-40g` names a GPU directly",
        site.as_deref().map_or_else(
            || "there is no site file: /etc/xmem/site.toml, XMEM_SITE or --site".to_owned(),
            |file| format!("the site file is `{}`", shown(file)),
        )
    ))]
    Unresolved { source: xmem_gate::Unresolved, site: Option<PathBuf> },
    #[error("cannot read the manifest `{}`", shown(path))]
    #[diagnostic(help("the file was not changed"))]
    Manifest { path: PathBuf, source: xmem_gate::ManifestError },
    #[error("cannot annotate the manifest `{}`", shown(path))]
    #[diagnostic(help("the file was not changed; without --write it is only read"))]
    Annotate { path: PathBuf, source: xmem_gate::ManifestError },
    #[error("there is nothing to write into `{}`: a trace has no verdict", shown(path))]
    #[diagnostic(help("the file was not changed"))]
    NothingToWrite { path: PathBuf },
    #[error("--write needs a trace in a file, not standard input")]
    WriteOfStdin,
    #[error("there is no number: a trace has no verdict")]
    #[diagnostic(help("--format text says why"))]
    NoNumber,
    #[error(transparent)]
    Serve(xmem_serve::ServeError),
    #[error("--update-baseline needs a file")]
    #[diagnostic(help("add --baseline FILE, for example --baseline .xmem/baseline.json"))]
    NoBaseline,
    #[error("cannot read the baseline `{}`", shown(path))]
    #[diagnostic(help(
        "`xmem check … --baseline FILE --update-baseline` writes a baseline; the file was not changed"
    ))]
    Baseline { path: PathBuf, source: xmem_gate::BaselineError },
    #[error("cannot read the site file `{}`", shown(path))]
    #[diagnostic(help("`xmem config --format schema` prints the JSON Schema of a site file"))]
    Site { path: PathBuf, source: Box<xmem_gate::SiteError> },
    #[error("{place}: {reason}")]
    #[diagnostic(help("`xmem config` shows all settings and where each comes from"))]
    Config { place: String, reason: String },
    #[error("`{program}` does not submit jobs to Slurm")]
    #[diagnostic(help(
        "give the whole command behind `--`: xmem submit -- sbatch --gres=gpu:a100:1 train.sh"
    ))]
    NotSlurm { program: String },
    #[error("cannot run `{program}`")]
    #[diagnostic(help(
        "the job was checked, and not submitted: check that the command is installed"
    ))]
    Execute { program: String, source: std::io::Error },
    #[error("there is no site file")]
    #[diagnostic(help("name it with --site or XMEM_SITE, or write /etc/xmem/site.toml"))]
    NoSite,
    #[error("{input} cannot be planned")]
    Plan { input: String, source: xmem_studies::planning::PlanningError },
    #[error("offloading cannot be simulated for {input}")]
    Offload { input: String, source: Box<xmem_studies::offloading::OffloadError> },
    #[error("{input} is not a table of blocks")]
    #[diagnostic(help(
        "a table has a header and a row for each block: `id,lower,upper,size`, live from tick lower until \
         before tick upper"
    ))]
    BlockTable { input: String, source: xmem_studies::planner::CsvError },
    #[error("{input} has no blocks to plan")]
    #[diagnostic(help(
        "a table needs a row for each block; of a recording, `xmem plan --scope all` plans every block"
    ))]
    NothingToPlan { input: String },
    #[error("--interrupt {part} names no request of {input}")]
    #[diagnostic(help(
        "`xmem plan INPUT --format csv` lists ticks and operators; the phases of a recording are init, data, forward, backward, zero_grad and optimizer_step"
    ))]
    InterruptionOfNothing { part: String, input: String },
    #[error("--interrupt leaves out all blocks of {input}")]
    #[diagnostic(help("leave at least one block to be planned"))]
    AllInterrupted { input: String },
    #[error("{input} is not a plan to be followed")]
    #[diagnostic(help("`xmem plan INPUT --export-hints FILE` writes one"))]
    Hints { input: String, source: xmem_report::json::HintsDocumentError },
    #[error("--plan needs --format text or json")]
    #[diagnostic(help("a run that follows a plan has one result, not one for each operation"))]
    PlanAsLines,
    #[error("no planner gave a plan")]
    #[diagnostic(help("--format text says why; use another planner, as auto, or more --time"))]
    NoPlan,
    #[error("--offsets needs --format json")]
    #[diagnostic(help("add --format json; --format csv always has the offsets of the best plan"))]
    OffsetsForm,
    #[error("cannot write to standard output")]
    Stdout { source: std::io::Error },
}

/// Sets the layout of errors: names of options are not split at their hyphens.
pub(crate) fn set_layout() {
    // A layout that was set before stays.
    let _ = miette::set_hook(Box::new(|_| {
        let options = miette::MietteHandlerOpts::new().word_splitter(WordSplitter::NoHyphenation);
        Box::new(options.build())
    }));
}

/// A name that is not that of one device.
#[derive(Debug, Error, Diagnostic)]
pub(crate) enum DeviceName {
    #[error("unknown device `{name}`{question}")]
    #[diagnostic(help(
        "`xmem devices` lists the known GPUs; use --device-file for another GPU, or --capacity 24GiB for \
         any GPU with that much memory"
    ))]
    Unknown { name: String, question: String },
    #[error("`{name}` is several devices: {list}")]
    #[diagnostic(help("name one of them, for example {example}"))]
    Several { name: String, list: String, example: &'static str },
}

impl From<DeviceNameError> for CliError {
    fn from(error: DeviceNameError) -> Self {
        let list = error.list();
        let question =
            error.question().map_or_else(String::new, |question| format!(": {question}"));
        Self::Device(Box::new(match error {
            DeviceNameError::Unknown { name, .. } => DeviceName::Unknown { name, question },
            DeviceNameError::Several { name, devices } => {
                let example = devices.first().map_or("", |device| device.name.as_str());
                DeviceName::Several { name, list, example }
            }
        }))
    }
}

impl From<ReadError> for CliError {
    fn from(error: ReadError) -> Self {
        match error {
            error @ ReadError::InflateLimit { .. } => Self::ReadLimit { error },
            other => Self::Read(other),
        }
    }
}

impl From<InputError> for CliError {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Trace(error) => error.into(),
            InputError::Snapshot { input, source } => {
                Self::Snapshot { path: PathBuf::from(input), source }
            }
        }
    }
}

impl From<AllocatorError> for CliError {
    fn from(error: AllocatorError) -> Self {
        Self::Allocator(Box::new(error.into()))
    }
}

impl CliError {
    /// The message, and those of its causes, in one line.
    pub(crate) fn with_causes(&self) -> String {
        let error: &dyn std::error::Error = self;
        let causes = std::iter::successors(Some(error), |error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    /// The error of a bug that was met while `of` was processed.
    pub(crate) fn internal(of: Option<&str>, Panicked { message }: Panicked) -> Self {
        Self::Panic { of: of.map(str::to_owned), message }
    }

    /// The error of a failed estimate of `trace`.
    pub(crate) fn estimate(trace: &str, error: EstimateError) -> Self {
        match error {
            EstimateError::Read(read) => read.into(),
            EstimateError::Allocator(error) => {
                Self::Allocator(Box::new(AllocatorOptionsError::with(trace, error)))
            }
            source => Self::Estimate { trace: trace.to_owned(), source },
        }
    }

    /// The error of an allocator that cannot be simulated for `input`, with its origin: the command
    /// line or the input.
    pub(crate) fn simulation(input: &str, error: AllocatorError) -> Self {
        match error {
            source @ AllocatorError::Conf { from: Origin::Input, .. } => {
                Self::Simulation { input: input.to_owned(), source }
            }
            other => other.into(),
        }
    }

    /// The error of an invalid operation of `input`.
    pub(crate) fn step(input: &str, error: StepError) -> Self {
        let operation = text::operation(&error.operation);
        Self::Step { index: error.index, operation, input: input.to_owned(), source: error.misuse }
    }

    /// The error of an estimate of `trace` that cannot be compared with `snapshot`.
    pub(crate) fn validate(trace: &str, snapshot: &str, error: ValidateError) -> Self {
        match error {
            ValidateError::Estimate(EstimateError::Allocator(error)) => error.into(),
            ValidateError::Estimate(error) => Self::estimate(trace, error),
            ValidateError::Recording(source) => Self::rerun(snapshot, source),
        }
    }

    /// The error of a recording in `snapshot` that cannot be replayed.
    pub(crate) fn rerun(snapshot: &str, source: RerunError) -> Self {
        Self::Rerun { snapshot: snapshot.to_owned(), source: Box::new(source) }
    }

    /// The exit code of this error.
    fn exit(&self) -> Exit {
        match self {
            Self::NothingToWrite { .. } | Self::NoNumber => Exit::Withheld,
            Self::Serve(ServeError::Site { .. } | ServeError::Certificate { .. }) => Exit::Usage,
            Self::Serve(_) => Exit::Unreadable,
            Self::NoDevice
            | Self::NoTrace
            | Self::NoTraceInScript { .. }
            | Self::Request(_)
            | Self::Submission(_)
            | Self::Script { .. }
            | Self::Unresolved { .. }
            | Self::WriteOfStdin
            | Self::NoBaseline
            | Self::Site { .. }
            | Self::Config { .. }
            | Self::NoSite
            | Self::NotSlurm { .. }
            | Self::Execute { .. }
            | Self::Device(_)
            | Self::DeviceFileIo { .. }
            | Self::DeviceFile { .. }
            | Self::UnknownRule { .. }
            | Self::NoCudnn { .. }
            | Self::Cudnn { .. }
            | Self::CudnnRefused { .. }
            | Self::NothingRecorded
            | Self::SegmentsAsText
            | Self::OffsetsForm
            | Self::InterruptionOfNothing { .. }
            | Self::AllInterrupted { .. }
            | Self::NoPlan
            | Self::PlanAsLines
            | Self::Allocator(_)
            | Self::StdinTwice { .. }
            | Self::SnapshotOfSeveral { .. }
            | Self::ReportOfSeveral { .. }
            | Self::PageToTerminal
            | Self::EndingOfReport { .. }
            | Self::FileToTerminal { .. }
            | Self::Pattern { .. }
            | Self::OutputIsInput { .. }
            | Self::OutputTwice { .. }
            | Self::DiffOfAnswer { .. }
            | Self::NoTerminal { .. }
            | Self::SkipDoneForm
            | Self::SkipDoneStdin
            | Self::Vary { .. }
            | Self::Then { .. }
            | Self::LetWrite { .. }
            | Self::ScriptWithoutPython { .. }
            | Self::ProgramAsDevice { .. }
            | Self::Ranks { .. }
            | Self::Estimate { .. } => Exit::Usage,
            Self::RecordingFailed(failed) => match failed.fault {
                Fault::Usage => Exit::Usage,
                Fault::Run => Exit::Unreadable,
            },
            Self::Rerun { source, .. } => match **source {
                RerunError::Setup(_) => Exit::Usage,
                _ => Exit::Unreadable,
            },
            Self::Read(_)
            | Self::Answer { .. }
            | Self::Temporary { .. }
            | Self::Baseline { .. }
            | Self::CudnnWorker { .. }
            | Self::Input { .. }
            | Self::EmptyInput { .. }
            | Self::TooLarge { .. }
            | Self::ReadLimit { .. }
            | Self::NotAList { .. }
            | Self::EmptyFolder { .. }
            | Self::NoMatch { .. }
            | Self::List { .. }
            | Self::EmptyList { .. }
            | Self::Folder { .. }
            | Self::Panic { .. }
            | Self::SkipDone { .. }
            | Self::Append { .. }
            | Self::Plan { .. }
            | Self::Offload { .. }
            | Self::BlockTable { .. }
            | Self::Hints { .. }
            | Self::NothingToPlan { .. }
            | Self::Operations { .. }
            | Self::Simulation { .. }
            | Self::Step { .. }
            | Self::Snapshot { .. }
            | Self::Write { .. }
            | Self::Manifest { .. }
            | Self::Annotate { .. }
            | Self::Stdout { .. } => Exit::Unreadable,
        }
    }

    /// Prints the error on standard error and returns its exit code.
    pub(crate) fn print(self) -> Exit {
        let exit = self.exit();
        terminal::print_report(&miette::Report::new(Shown::new(self)));
        exit
    }
}
