//! Tables for data frames: the blocks, moments or segments of a run as a Parquet file, and the rows of an evaluation.
//!
//! Left to others: the columns ([`table`](crate::table)), how a file is made of them ([`file`]), and read ([`reading`]).

mod file;
mod reading;

use crate::Run;
use crate::table::{Column, RunTable, columns};
use reading::ReadFile;
use xmem::Bytes;
use xmem_eval::evaluation::{Evaluation, EvaluationColumn, EvaluationRow};

/// The version of the rows of an evaluation.
const EVALUATED: &str = "xmem.evaluated/1";
/// The keys of facts about a file.
const SCHEMA: &str = "xmem.schema";
const TRUTH: &str = "xmem.truth";

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
        (SCHEMA, EVALUATED.to_owned()),
        ("xmem.title", evaluation.title.clone()),
        (TRUTH, evaluation.truth.name().to_owned()),
    ];
    file::file(&columns, &facts)
}

/// A table of these columns as a Parquet file that names the version of the table.
#[must_use]
pub fn columns_parquet(columns: Vec<EvaluationColumn>, schema: &str) -> Vec<u8> {
    let columns: Vec<Column> = columns.into_iter().map(Column::from).collect();
    file::file(&columns, &[(SCHEMA, schema.to_owned())])
}

/// Reads what [`columns_parquet`] wrote.
///
/// # Errors
///
/// The reason why the file is not a table of this version.
pub fn columns_of_parquet(bytes: Vec<u8>, schema: &str) -> Result<Vec<EvaluationColumn>, String> {
    Ok(read(bytes, schema)?.columns)
}

fn read(bytes: Vec<u8>, schema: &str) -> Result<ReadFile, String> {
    let file = reading::read(bytes).map_err(|error| error.to_string())?;
    match file.fact(SCHEMA) {
        Some(found) if found == schema => Ok(file),
        Some(other) => Err(format!("it is of version {other}, expected {schema}")),
        None => Err(format!("it is not of version {schema}")),
    }
}

/// The rows of an evaluation that a Parquet file has.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluatedRows {
    /// The name of the [source](xmem_eval::evaluation::TruthSource::name) of the runs.
    pub truth: String,
    /// The rows.
    pub rows: Vec<EvaluationRow>,
}

/// Reads what [`evaluation_parquet`] wrote. Memory by class is not in it.
///
/// # Errors
///
/// The reason why the file is not such a table.
pub fn evaluation_of_parquet(bytes: Vec<u8>) -> Result<EvaluatedRows, String> {
    let file = read(bytes, EVALUATED)?;
    let truth = file.fact(TRUTH).unwrap_or_default().to_owned();
    Ok(EvaluatedRows { truth, rows: EvaluationRow::of_columns(&file.columns)? })
}

fn facts(run: &Run<'_>, table: RunTable) -> Vec<(&'static str, String)> {
    let (answer, timeline) = (run.answer, run.timeline);
    let peak = &answer.memory.peak;
    let bytes = |bytes: Bytes| bytes.get().to_string();
    let mut facts = vec![
        (SCHEMA, table.schema().to_owned()),
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
