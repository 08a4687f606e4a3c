//! Recordings that failed or are incomplete, with what to do about it.

use super::address_space;
use super::explained::{self, INCOMPLETE};
use crate::error::{self, CliError, Failure};
use crate::exit::Exit;
use crate::file_size_limit::explain;
use miette::Diagnostic;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use thiserror::Error;
use xmem::Bytes;
use xmem_recorder::{CommandEnd, CutShort, Engine, RecordError, Recorded, Shortage};

/// The error of a recording from which nothing was saved.
#[derive(Debug, Error, Diagnostic)]
#[error("{what}")]
struct RecordingFailed {
    what: String,
    #[source]
    cause: Option<io::Error>,
    #[help]
    help: String,
    exit: Exit,
    code: &'static str,
}

impl Failure for RecordingFailed {
    fn exit(&self) -> Exit {
        self.exit
    }

    fn error_code(&self) -> &'static str {
        self.code
    }
}

/// Advice against running out of memory.
const REDUCE_MEMORY: &str = "record on a virtual GPU (--virtual-gpu a100-40g, with PyTorch's CUDA build), which needs \
    almost no memory, or fewer iterations (--steps 1) or no stacks (--no-stacks); a smaller batch or model also needs \
    less, but is a different job";

/// Advice against taking too long.
const REDUCE_TIME: &str = "record on a virtual GPU (--virtual-gpu a100-40g, with PyTorch's CUDA build), which computes \
    nothing, or fewer iterations with --steps 1, or raise --timeout";

impl From<RecordError> for CliError {
    fn from(error: RecordError) -> Self {
        let (what, code) = (error.to_string(), explained::code(&error));
        let (exit, help) = match &error {
            RecordError::NeedsUnix => (
                Exit::Usage,
                "record on Linux, macOS or WSL, or with torch.profiler as described on the recording page \
                 of the guide; traces can be read on every platform"
                    .to_owned(),
            ),
            RecordError::SnapshotOfTheCpu | RecordError::CapacityOfTheCpu => (
                Exit::Usage,
                "add --virtual-gpu and the name of a GPU, for example --virtual-gpu a100-40g; the job then \
                 runs on PyTorch's CUDA build"
                    .to_owned(),
            ),
            RecordError::NotAFile { .. } => {
                (Exit::Usage, "--output needs a file name".to_owned())
            }
            RecordError::HookDisabled { option } => (
                Exit::Usage,
                format!("remove {option}: Python finds the hook through PYTHONPATH and `site`"),
            ),
            RecordError::Spawn { .. } => (
                Exit::Usage,
                "give the command after `--`, as in a shell: the program first, then its arguments".to_owned(),
            ),
            RecordError::Session { .. } => {
                let help = "set TMPDIR to a folder that only you can write to, with some free space";
                (Exit::Unreadable, help.to_owned())
            }
            RecordError::Overlay { .. } => (
                Exit::Unreadable,
                "set TMPDIR to a folder that only you can write to, with some free space; `--let-write all` lets \
                 the script write to your files"
                    .to_owned(),
            ),
            RecordError::HookNotLoaded { .. } => (
                Exit::Unreadable,
                "the command after `--` must start Python on this machine (with docker, ssh or sbatch, \
                 call xmem inside), as the same user, without -I, -E or -S, and must not clear PYTHONPATH"
                    .to_owned(),
            ),
            RecordError::Shadowed { path } => (Exit::Unreadable, unshadow(path)),
            RecordError::NotATrace { .. } => (
                Exit::Unreadable,
                "nothing was saved; the script, or a library that it uses, must leave the folder named by \
                 XMEM_RECORDER alone"
                    .to_owned(),
            ),
            RecordError::Export { .. } => (
                Exit::Unreadable,
                "the command must run as the user who runs xmem, and leave the folder named by XMEM_RECORDER \
                 alone"
                    .to_owned(),
            ),
            RecordError::Stalled { .. } => (
                Exit::Unreadable,
                "run the command again, with --steps 1 or --no-stacks if the machine is short of memory"
                    .to_owned(),
            ),
            RecordError::NoTorch { .. } => (
                Exit::Unreadable,
                "check that this is the training script, and that its Python environment has torch"
                    .to_owned(),
            ),
            RecordError::Unsupported { .. } => (
                Exit::Unreadable,
                "install a newer torch (the CPU build is enough), or record with torch.profiler as \
                 described on the recording page of the guide"
                    .to_owned(),
            ),
            RecordError::NoVirtualGpu { no_kernels: true, .. } => (
                Exit::Unreadable,
                "install a build of PyTorch with kernels for this device (`torch.cuda.get_arch_list()` names \
                 them; those for older releases of CUDA have them for older devices), or record with \
                 --engine cpu"
                    .to_owned(),
            ),
            RecordError::NoVirtualGpu { .. } => (
                Exit::Unreadable,
                "the virtual GPU needs Linux on x86-64 with glibc, a folder (TMPDIR) without a space or \
                 colon in its path, on a file system that is not mounted with noexec, and address space \
                 without a limit (`ulimit -v unlimited`); --engine cpu records without a virtual GPU"
                    .to_owned(),
            ),
            RecordError::OtherUser { to, .. } => (
                Exit::Unreadable,
                format!(
                    "start the whole command as that user, `sudo -u '#{to}' xmem profile …`, or leave the \
                     change of the user out while the script is recorded"
                ),
            ),
            RecordError::NothingRan { missing: Some(text), .. } => {
                (Exit::Unreadable, xmem::types::printable(text).into_owned())
            }
            RecordError::NothingRan { missing: None, .. } => (
                Exit::Unreadable,
                "recording starts when a model runs: check that the script is given the arguments with \
                 which it trains"
                    .to_owned(),
            ),
            RecordError::Raised { .. } => (
                Exit::Unreadable,
                "the exception comes from the script; if it is not raised on a machine with a GPU, the \
                 recording page of the guide lists what differs under xmem"
                    .to_owned(),
            ),
            RecordError::NoGraph { .. } => (
                Exit::Unreadable,
                "`xmem profile -- COMMAND` records the job as it runs, for `xmem replay`".to_owned(),
            ),
            RecordError::Died { end, iterations, peak, total } => {
                (Exit::Unreadable, after_death(*end, *iterations, *peak, *total))
            }
            RecordError::Failed { .. } => (
                Exit::Unreadable,
                format!("if the disk is full, free some space; otherwise {REDUCE_MEMORY}"),
            ),
            RecordError::Output { .. } => (
                Exit::Unreadable,
                "the file was not changed; check that the directory exists, is writable and has free \
                 space"
                    .to_owned(),
            ),
        };
        let help = match error {
            RecordError::NoTorch { .. }
            | RecordError::NothingRan { .. }
            | RecordError::Raised { .. }
            | RecordError::Died { .. }
            | RecordError::NoVirtualGpu { no_kernels: false, .. }
            | RecordError::Failed { .. }
            | RecordError::HookNotLoaded { .. } => with_advice(help),
            _ => help,
        };
        let cause = match error {
            RecordError::Output { source, .. }
            | RecordError::Session { source }
            | RecordError::Export { source }
            | RecordError::Spawn { source, .. } => Some(explain(source)),
            _ => None,
        };
        RecordingFailed { what, cause, help, exit, code }.into()
    }
}

/// The advice, behind that about a limit with which the command ran.
fn with_advice(help: String) -> String {
    address_space::advice().map_or_else(|| help.clone(), |limit| format!("{limit}; else {help}"))
}

/// The advice for a file that hides a module.
pub(super) fn unshadow(path: &Path) -> String {
    let what = if path.extension().is_some() { "file" } else { "folder" };
    format!(
        "rename this {what}, or move it away: Python looks for modules in the folder of the script first"
    )
}

/// The advice for a process that ended before its recording was saved.
fn after_death(end: CommandEnd, iterations: u32, peak: Bytes, total: Bytes) -> String {
    let lost = match iterations {
        0 => "no iteration was complete".to_owned(),
        1 => "one iteration was lost".to_owned(),
        more => format!("{more} iterations were lost"),
    };
    let memory = format!("its processes used up to {peak} of {total} of memory");
    match end {
        CommandEnd::Ended(status) if was_killed(status) => format!(
            "{lost}; {memory}. The kernel sends SIGKILL when memory runs out: {REDUCE_MEMORY}; with \
             --max-memory, xmem saves the recorded iterations before that happens"
        ),
        CommandEnd::Ended(_) => format!(
            "{lost}; {memory}. Run the command without xmem to check whether it ends in the same way"
        ),
        CommandEnd::Timeout(_) => {
            format!("{lost}; {REDUCE_TIME}")
        }
        CommandEnd::Memory(shortage) => {
            format!(
                "{lost}; {}. Use a machine with more memory, or {REDUCE_MEMORY}",
                short_of(shortage)
            )
        }
        CommandEnd::Interrupted => lost,
    }
}

/// Returns whether the process was ended by SIGKILL, which no process can catch.
#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    /// POSIX, `kill`: the number of SIGKILL.
    const SIGKILL: i32 = 9;
    /// POSIX, Shell & Utilities, 2.8.2: a shell adds this to the number of the signal (as bash
    /// does).
    const BY_SIGNAL: i32 = 128;
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(SIGKILL) || status.code() == Some(BY_SIGNAL + SIGKILL)
}

#[cfg(not(unix))]
fn was_killed(_status: ExitStatus) -> bool {
    false
}

fn short_of(shortage: Shortage) -> String {
    match shortage {
        Shortage::Limit { limit, resident } => {
            format!("the recording needs at least {resident}, but --max-memory allows {limit}")
        }
        Shortage::Refused { needed, resident, limit } => format!(
            "the recording needs at least {}: the script requested {needed} in addition to the {resident} \
             in use{}",
            needed + resident,
            limit.map_or_else(String::new, |l| format!(", but --max-memory allows {l}")),
        ),
        Shortage::Host { resident, total, available } => format!(
            "the recording needs at least {resident}; {available} of {total} were available"
        ),
    }
}

/// The warning about a recording with fewer iterations than requested.
#[derive(Debug, Error, Diagnostic)]
#[error("{what}")]
#[diagnostic(severity(Warning))]
struct Incomplete {
    what: String,
    #[help]
    help: String,
}

/// Prints why a recording is incomplete.
pub(crate) fn print_cut_short(recorded: &Recorded, reason: &CutShort) {
    let (why, help) = incomplete(reason);
    let help = match reason {
        CutShort::Raised(text) if is_out_of_memory(text) => help,
        CutShort::Exit(_) | CutShort::Raised(_) | CutShort::Truncated => with_advice(help),
        _ => help,
    };
    let (what, help) = match recorded.iterations {
        _ if *reason == CutShort::NothingOnGpu => (why, help),
        0 if *reason == CutShort::NothingTrained && recorded.engine == Engine::VirtualGpu => {
            (why, format!("{help}; else the answer about the whole script holds"))
        }
        0 => (
            format!("incomplete recording: {why}"),
            format!("{help}; a trace without a complete iteration gets no verdict"),
        ),
        _ => (
            format!("incomplete recording: {why}"),
            format!("{help}; the iterations in the trace can be replayed"),
        ),
    };
    error::print(Incomplete { what, help }, INCOMPLETE);
}

/// Whether an exception is that of an allocation on the GPU. Only a virtual GPU with a limit runs out of memory.
fn is_out_of_memory(exception: &str) -> bool {
    exception.starts_with("OutOfMemoryError")
}

fn incomplete(reason: &CutShort) -> (String, String) {
    let rerun = "what the script printed says why; if it does not end there on a machine with a GPU, the \
                 recording page of the guide lists what differs under xmem";
    match reason {
        CutShort::Exit(status) => {
            (format!("the command {}", CommandEnd::Ended(*status)), rerun.to_owned())
        }
        CutShort::NothingTrained => (
            "the script ended without running a model".to_owned(),
            "check that the script is given the arguments with which it trains".to_owned(),
        ),
        CutShort::NothingOnGpu => (
            "the script put no tensor on the GPU: the recording is not one of a GPU job".to_owned(),
            "move the model and its batches with .to(\"cuda\"), or give the script the option with which it \
             uses a GPU; torch.cuda.is_available() is true while it is recorded"
                .to_owned(),
        ),
        CutShort::Raised(text) if is_out_of_memory(text) => (
            format!("the script raised {}", in_one_line(text)),
            "a GPU with this much memory runs out of it as well; without --enforce and --capacity the recording is \
             complete, and `xmem replay` says how much is missing"
                .to_owned(),
        ),
        CutShort::Raised(text) => (format!("the script raised {}", in_one_line(text)), rerun.to_owned()),
        CutShort::Signal(name) => (format!("{name} ended the script"), rerun.to_owned()),
        CutShort::Interrupted => (
            "interrupted".to_owned(),
            "let the command run to its end to record all iterations".to_owned(),
        ),
        CutShort::Timeout(limit) => (
            format!("the time limit of {} was reached", time(*limit)),
            REDUCE_TIME.to_owned(),
        ),
        CutShort::Memory(shortage) => (
            format!("memory ran out: {}", short_of(*shortage)),
            format!("use a machine with more memory, or {REDUCE_MEMORY}"),
        ),
        CutShort::LeftBehind => (
            "the command ended while a process started by it was still training".to_owned(),
            "use a command that waits for the training to end".to_owned(),
        ),
        CutShort::Truncated => (
            "the process was killed while PyTorch wrote the trace; the end of the trace is missing"
                .to_owned(),
            rerun.to_owned(),
        ),
        CutShort::Unknown => {
            ("the script ended before all iterations were complete".to_owned(), rerun.to_owned())
        }
    }
}

/// The lines of a message as one.
fn in_one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn time(limit: Duration) -> String {
    humantime::format_duration(limit).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_or_too_much_memory_is_told_of_the_virtual_gpu() {
        let shortage = Shortage::Host { resident: Bytes(3), total: Bytes(4), available: Bytes(1) };
        let timeout = Duration::from_secs(60);
        let deaths = [CommandEnd::Timeout(timeout), CommandEnd::Memory(shortage)];
        let deaths = deaths.map(|end| after_death(end, 0, Bytes(3), Bytes(4)));
        let cut = [CutShort::Timeout(timeout), CutShort::Memory(shortage)];
        for text in deaths.into_iter().chain(cut.map(|reason| incomplete(&reason).1)) {
            assert!(text.contains("--virtual-gpu"), "{text}");
        }
    }
}
