//! Recordings that failed or were cut short, with what to do about it.

use super::Complaint;
use miette::Diagnostic;
use std::io::{self, Write};
use std::process::ExitStatus;
use std::time::Duration;
use thiserror::Error;
use xmem::Bytes;
use xmem_recorder::{CutShort, Fate, RecordError, Recorded, Shortage};

/// Nothing was recorded.
#[derive(Debug, Error, Diagnostic)]
#[error("{what}")]
pub(crate) struct Unrecorded {
    what: String,
    #[source]
    cause: Option<io::Error>,
    #[help]
    help: String,
    pub(super) blame: Blame,
}

/// Who can change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// Who wrote the command line.
    Usage,
    /// The command, or the machine.
    Run,
}

/// How memory is kept from running out.
const LESS_MEMORY: &str = "record fewer iterations (--steps 1) or leave out stacks (--no-stacks); a \
    smaller batch or model needs less, too, but is another job";

impl From<RecordError> for Complaint {
    fn from(error: RecordError) -> Self {
        let what = error.to_string();
        let (blame, help) = match &error {
            RecordError::NeedsUnix => (
                Blame::Usage,
                "record on Linux or macOS, for instance in WSL, or with torch.profiler as the guide's \
                 page on recording says; traces are read everywhere"
                    .to_owned(),
            ),
            RecordError::NotAFile { .. } => {
                (Blame::Usage, "--output takes the name of a file, new or old".to_owned())
            }
            RecordError::Isolated { option } => (
                Blame::Usage,
                format!("leave {option} out: the hook is found through PYTHONPATH and `site`"),
            ),
            RecordError::Spawn { .. } => (
                Blame::Usage,
                "after `--` comes the command as you would type it, its program first".to_owned(),
            ),
            RecordError::Session { .. } => {
                (Blame::Run, "the folder for temporary files must have room; TMPDIR names it".into())
            }
            RecordError::NoHook { .. } => (
                Blame::Run,
                "after `--` comes the command that starts Python, here and not elsewhere (docker, ssh \
                 and sbatch: call xmem in there); Python must run without -I, -E and -S, and with the \
                 PYTHONPATH that it is given"
                    .to_owned(),
            ),
            RecordError::NoTorch { .. } => (
                Blame::Run,
                "xmem records what PyTorch does: is this the script that trains, and the Python that \
                 has torch?"
                    .to_owned(),
            ),
            RecordError::Unsupported { .. } => (
                Blame::Run,
                "install a newer torch, the CPU build is enough, or record with torch.profiler as the \
                 guide's page on recording says"
                    .to_owned(),
            ),
            RecordError::NothingRan { .. } => (
                Blame::Run,
                "a recording begins where a model runs: give the script the arguments with which it \
                 trains"
                    .to_owned(),
            ),
            RecordError::Died { fate, iterations, peak, total } => {
                (Blame::Run, after_death(*fate, *iterations, *peak, *total))
            }
            RecordError::Failed { .. } => (
                Blame::Run,
                format!("if there was no room, make some; else {LESS_MEMORY}"),
            ),
            RecordError::Output { .. } => (
                Blame::Run,
                "nothing was changed there; check that the directory exists, may be written and has \
                 room"
                    .to_owned(),
            ),
        };
        let cause = match error {
            RecordError::Output { source, .. }
            | RecordError::Session { source }
            | RecordError::Spawn { source, .. } => Some(source),
            _ => None,
        };
        Self::Unrecorded(Box::new(Unrecorded { what, cause, help, blame }))
    }
}

/// What to do when a process took its recording with it.
fn after_death(fate: Fate, iterations: u32, peak: Bytes, total: Bytes) -> String {
    let lost = match iterations {
        0 => "no iteration was over".to_owned(),
        1 => "one iteration was lost".to_owned(),
        more => format!("{more} iterations were lost"),
    };
    let memory = format!("its processes had up to {peak} of memory; there are {total}");
    match fate {
        Fate::Ended(status) if was_killed(status) => format!(
            "{lost}; {memory}. SIGKILL is what the kernel sends when memory runs out: {LESS_MEMORY}; \
             with --max-memory xmem saves what there is before it comes to that"
        ),
        Fate::Ended(_) => format!(
            "{lost}; {memory}. Run the command without xmem to see whether it ends in the same way"
        ),
        Fate::Timeout(_) => format!("{lost}; raise --timeout, or ask for less with --steps 1"),
        Fate::Memory(shortage) => {
            format!("{lost}; {}. Use a machine with more, or {LESS_MEMORY}", short_of(shortage))
        }
        Fate::Interrupted => lost,
    }
}

/// Whether it was SIGKILL, which no process can catch.
#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    /// POSIX, `kill`: the number of SIGKILL.
    const SIGKILL: i32 = 9;
    /// POSIX, Shell & Utilities, 2.8.2: a shell adds this to the number of the signal (as bash does).
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
            format!("the recording needs at least {resident}, and --max-memory allows {limit}")
        }
        Shortage::Refused { needed, resident, limit } => format!(
            "the recording needs at least {}, as the script asked for {needed} beside the {resident} \
             that it had{}",
            needed + resident,
            limit.map_or_else(String::new, |l| format!(", and --max-memory allows {l}")),
        ),
        Shortage::Host { resident, total, available } => format!(
            "the recording needs at least {resident}; of the {total} that there are, {available} were \
             left"
        ),
    }
}

/// A recording that is not all that was asked for.
#[derive(Debug, Error, Diagnostic)]
#[error("the recording is cut short: {why}")]
#[diagnostic(severity(Warning))]
struct Incomplete {
    why: String,
    #[help]
    help: String,
}

/// Prints why a recording is cut short.
pub(crate) fn print_cut_short(recorded: &Recorded, reason: &CutShort) {
    let (why, help) = incomplete(reason);
    let help = match recorded.iterations {
        0 => format!("{help}; without an iteration, the trace is not enough for an estimate"),
        _ => format!("{help}; what is in the trace can be replayed"),
    };
    let report = miette::Report::new(Incomplete { why, help });
    // Nothing can be done when standard error itself is closed.
    let _ = writeln!(io::stderr(), "{report:?}");
}

fn incomplete(reason: &CutShort) -> (String, String) {
    let rerun = "run the command without xmem to see whether it ends in the same way";
    match reason {
        CutShort::Exit(status) => {
            (format!("the command {}", Fate::Ended(*status)), rerun.to_owned())
        }
        CutShort::NothingTrained => (
            "the script came to its end, and no model ran in it".to_owned(),
            "give the script the arguments with which it trains".to_owned(),
        ),
        CutShort::Raised(text) => (format!("the script raised {text}"), rerun.to_owned()),
        CutShort::Signal(name) => (format!("{name} ended the script"), rerun.to_owned()),
        CutShort::Interrupted => {
            ("it was interrupted".to_owned(), "let it run to its end for all iterations".to_owned())
        }
        CutShort::Timeout(limit) => (
            format!("the time of {} was over", time(*limit)),
            "raise --timeout, or ask for less with --steps 1".to_owned(),
        ),
        CutShort::Memory(shortage) => (
            format!("memory ran out: {}", short_of(*shortage)),
            format!("use a machine with more memory, or {LESS_MEMORY}"),
        ),
        CutShort::LeftBehind => (
            "the command ended while a process that it had started was still training".to_owned(),
            "give a command that waits for the training to end".to_owned(),
        ),
        CutShort::Truncated => (
            "the process died while PyTorch wrote the trace, and its end is missing".to_owned(),
            rerun.to_owned(),
        ),
        CutShort::Unknown => {
            ("the script ended before all iterations were over".to_owned(), rerun.to_owned())
        }
    }
}

fn time(limit: Duration) -> String {
    humantime::format_duration(limit).to_string()
}
