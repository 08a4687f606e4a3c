//! Tables for data frames: the blocks, moments or segments of a run as a Parquet file, and the rows of an evaluation.
//!
//! Left to others: the columns ([`table`](crate::table)), and how a file is made of them ([`file`]).

mod file;

use crate::Run;
use crate::table::{Column, RunTable, columns};
use xmem::Bytes;
use xmem_eval::evaluation::Evaluation;

/// A table of the run as a Parquet file. Sizes are bytes, times nanoseconds since the recording began; moments are row
/// numbers of the table of moments. The peaks and the device are in the file's metadata, their keys begin with `xmem.`.
#[must_use]
pub fn parquet(run: &Run<'_>, table: RunTable) -> Vec<u8> {
    file::file(&columns(run, table), &facts(run, table))
}

/// The rows of an evaluation as a Parquet file: one for each estimate of each job. Sizes are bytes, times seconds, errors
/// fractions.
#[must_use]
pub fn evaluation_parquet(evaluation: &Evaluation) -> Vec<u8> {
    let columns: Vec<Column> = evaluation.columns().into_iter().map(Column::from).collect();
    let facts = [
        ("xmem.schema", "xmem.evaluated/1".to_owned()),
        ("xmem.title", evaluation.title.clone()),
        ("xmem.truth", evaluation.truth.name().to_owned()),
    ];
    file::file(&columns, &facts)
}

fn facts(run: &Run<'_>, table: RunTable) -> Vec<(&'static str, String)> {
    let (answer, timeline) = (run.answer, run.timeline);
    let peak = &answer.memory.peak;
    let bytes = |bytes: Bytes| bytes.get().to_string();
    let mut facts = vec![
        ("xmem.schema", table.schema().to_owned()),
        ("xmem.input", run.name.to_owned()),
        ("xmem.device", answer.device().name.clone()),
        ("xmem.device_bytes", bytes(answer.device().memory)),
        ("xmem.peak_allocated_bytes", bytes(peak.allocated)),
        ("xmem.peak_requested_bytes", bytes(peak.requested)),
        ("xmem.peak_reserved_bytes", bytes(peak.reserved)),
        ("xmem.peak_device_bytes", bytes(peak.device)),
        ("xmem.peak_moment", timeline.peak.to_string()),
        ("xmem.peak_reserved_moment", timeline.reserved_peak.to_string()),
    ];
    if let Some(moment) = timeline.out_of_memory {
        facts.push(("xmem.out_of_memory_moment", moment.to_string()));
    }
    facts
}
