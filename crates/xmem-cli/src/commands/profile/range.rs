//! Answers with a range: further recordings of the command.

use super::args::ProfileArgs;
use super::error::ProfileFailure;
use super::progress;
use crate::error::CliError;
use crate::global::Global;
use crate::terminal::{say, shown};
use xmem::types::printable;
use xmem_recorder::{DevicePeaks, Recorded, Request, Stacks, Timing};
use xmem_tempfiles::PrivateFolder;

/// Records the command at the lowest shares, and returns its peaks; none if it does not run to its end there.
pub(super) fn lowest(
    request: &Request,
    args: &ProfileArgs,
    global: &Global,
) -> Result<Option<DevicePeaks>, CliError> {
    say("note: the command is recorded twice, first at the lowest shares of --assume");
    let peaks =
        peaks(Request { assume: request.assume.lowest(), ..request.clone() }, args, global)?;
    if peaks.is_none() {
        say("note: the lowest shares could not be recorded: the answer will have no range");
    }
    Ok(peaks)
}

/// Records the command with a host that runs ahead of the GPU, and returns its peaks; none if it does not run to its
/// end there.
pub(super) fn run_ahead(
    request: &Request,
    args: &ProfileArgs,
    global: &Global,
) -> Result<Option<DevicePeaks>, CliError> {
    say("note: the command is recorded twice, first with a host that runs ahead of the GPU");
    let peaks = peaks(Request { timing: Timing::RunAhead, ..request.clone() }, args, global)?;
    if peaks.is_none() {
        say("note: --run-ahead could not be recorded: the answer will have no range");
    }
    Ok(peaks)
}

/// Makes a recording that is not kept, and returns its peaks; none if it does not run to its end.
fn peaks(
    request: Request,
    args: &ProfileArgs,
    global: &Global,
) -> Result<Option<DevicePeaks>, CliError> {
    let folder =
        PrivateFolder::new().map_err(|error| ProfileFailure::TemporaryFolder { source: error })?;
    let output = folder.path().join("other.json.zst");
    let request = Request { output, stacks: Stacks::Omitted, snapshot: None, ..request };
    Ok(match progress::record(&request, args, global).0 {
        Ok(recorded) if recorded.cut_short.is_none() => recorded.peaks,
        Ok(_) => None,
        Err(error) => {
            say(&format!("note: {error}"));
            None
        }
    })
}

/// Says which sizes follow from assumptions without bounds, and what to do about it.
pub(super) fn advise(recorded: &Recorded) {
    if recorded.unbounded.is_empty() {
        return;
    }
    let operators = unbounded_operators(recorded);
    let mut names: Vec<&str> =
        recorded.unbounded.iter().filter_map(|(_, name)| name.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let ranges: Vec<String> =
        names.iter().map(|name| format!("{}=LOW..HIGH", printable(name))).collect();
    let advice = if recorded.unbounded.iter().any(|(_, name)| name.is_none()) {
        "record on the CPU, with --engine cpu".to_owned()
    } else {
        format!("--assume {} gives the answer a range", ranges.join(","))
    };
    let file = shown(recorded.destination.path());
    say(&format!(
        "note: sizes in {file} depend on values that a virtual GPU does not compute ({operators}): {advice}"
    ));
}

/// The operators whose sizes follow from assumptions without bounds.
pub(super) fn unbounded_operators(recorded: &Recorded) -> String {
    let mut operators: Vec<_> =
        recorded.unbounded.iter().map(|(operator, _)| printable(operator)).collect();
    operators.dedup();
    operators.join(", ")
}
