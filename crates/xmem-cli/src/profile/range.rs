//! Assumed values with a range: the recording at the lowest shares.

use super::progress::RecordingProgress;
use crate::args::{Global, ProfileArgs};
use crate::error::CliError;
use crate::terminal::{say, shown};
use xmem::printable;
use xmem_recorder::{DevicePeaks, Recorded, Request, Stacks};
use xmem_tempfiles::PrivateFolder;

/// Records the command at the lowest shares, and returns its peaks; none if it does not run to its end there.
pub(super) fn lowest(
    request: &Request,
    args: &ProfileArgs,
    global: &Global,
) -> Result<Option<DevicePeaks>, CliError> {
    let folder = PrivateFolder::new().map_err(|error| CliError::Temporary { source: error })?;
    let request = Request {
        output: folder.path().join("lowest.json.zst"),
        stacks: Stacks::Omitted,
        snapshot: None,
        assume: request.assume.lowest(),
        ..request.clone()
    };
    say("note: the command is recorded twice, first at the lowest shares of --assume");
    let progress = RecordingProgress::new(args.steps(), global.verbosity());
    let recorded = xmem_recorder::record(&request, &mut |news| progress.show(news));
    drop(progress);
    let peaks = match recorded {
        Ok(recorded) if recorded.cut_short.is_none() => recorded.peaks,
        Ok(_) => None,
        Err(error) => {
            say(&format!("note: {error}"));
            None
        }
    };
    if peaks.is_none() {
        say("note: the lowest shares could not be recorded: the answer will have no range");
    }
    Ok(peaks)
}

/// Says which sizes follow from assumptions without bounds, and what to do about it.
pub(super) fn advise(recorded: &Recorded) {
    if recorded.unbounded.is_empty() {
        return;
    }
    let mut operators: Vec<String> =
        recorded.unbounded.iter().map(|(operator, _)| printable(operator).into_owned()).collect();
    operators.dedup();
    let mut names: Vec<&str> =
        recorded.unbounded.iter().filter_map(|(_, name)| name.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let ranges: Vec<String> =
        names.iter().map(|name| format!("{}=LOW..HIGH", printable(name))).collect();
    let advice = if recorded.unbounded.iter().any(|(_, name)| name.is_none()) {
        "record on the CPU, without --virtual-gpu".to_owned()
    } else {
        format!("--assume {} gives the answer a range", ranges.join(","))
    };
    let file = shown(recorded.destination.path());
    say(&format!(
        "note: sizes in {file} depend on values that a virtual GPU does not compute ({}): {advice}",
        operators.join(", ")
    ));
}
