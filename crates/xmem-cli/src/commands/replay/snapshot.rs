//! `xmem replay --snapshot`.

use crate::error::CliError;
use crate::global::Verbosity;
use crate::output;
use crate::terminal::{say, shown};
use std::path::Path;
use xmem::snapshot::Snapshot;

/// Writes the predicted run to `file`, and prints how to view it.
pub(super) fn write(
    snapshot: &Snapshot,
    file: &Path,
    verbosity: Verbosity,
) -> Result<(), CliError> {
    output::bytes(Some(file), |to| Ok(xmem::snapshot::write(snapshot, to)?))?;
    if verbosity != Verbosity::Quiet {
        let events: usize = snapshot.device_traces.iter().map(Vec::len).sum();
        let name = shown(file);
        say(&format!(
            "note: wrote the predicted run to {name} ({events} events); to view it, drop the file on\n\
             https://pytorch.org/memory_viz, or run: \
             python -m torch.cuda._memory_viz trace_plot {name} -o {name}.html"
        ));
    }
    Ok(())
}
