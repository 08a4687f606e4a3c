//! `xmem replay --snapshot`.

use crate::args::Verbosity;
use crate::complaint::Complaint;
use crate::output;
use std::io::Write;
use std::path::Path;
use xmem::Snapshot;

/// Writes the predicted run to `file`, and says what to do with it.
pub(crate) fn write(
    snapshot: &Snapshot,
    file: &Path,
    verbosity: Verbosity,
) -> Result<(), Complaint> {
    output::stream(Some(file), |to| Ok(xmem::write_snapshot(snapshot, to)?))?;
    if verbosity != Verbosity::Quiet {
        let events: usize = snapshot.device_traces.iter().map(Vec::len).sum();
        let name = file.display();
        // Nothing can be done when standard error itself is closed.
        let _ = writeln!(
            std::io::stderr(),
            "note: the predicted run is in {name} ({events} events); to look at it, drag it into\n\
             https://pytorch.org/memory_viz, or: \
             python -m torch.cuda._memory_viz trace_plot {name} -o {name}.html"
        );
    }
    Ok(())
}
