//! `xmem.baseline/1`: the file of a baseline.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xmem::Bytes;
use xmem_gate::{Baseline, BaselineEntry, BaselineError};

const BASELINE: &str = "xmem.baseline/1";

/// Figures of jobs, with which later ones are compared.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct BaselineDocument {
    schema: String,
    entries: Vec<EntryDto>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct EntryDto {
    trace: String,
    device: String,
    allocated_bytes: u64,
    reserved_bytes: u64,
    by_role: BTreeMap<String, u64>,
    by_module: BTreeMap<String, u64>,
}

/// The file of a baseline: the same bytes for the same figures.
#[must_use]
pub fn baseline_json(baseline: &Baseline) -> String {
    let table = |table: &BTreeMap<String, Bytes>| {
        table.iter().map(|(name, bytes)| (name.clone(), bytes.get())).collect()
    };
    let entries = baseline.entries.iter().map(|((trace, device), entry)| EntryDto {
        trace: trace.clone(),
        device: device.clone(),
        allocated_bytes: entry.allocated.get(),
        reserved_bytes: entry.reserved.get(),
        by_role: table(&entry.by_role),
        by_module: table(&entry.by_module),
    });
    crate::encode::pretty(&BaselineDocument {
        schema: BASELINE.to_owned(),
        entries: entries.collect(),
    })
}

/// Reads the file of a baseline.
///
/// # Errors
/// If it is not one of this version.
pub fn read_baseline(text: &str) -> Result<Baseline, BaselineError> {
    let file: BaselineDocument =
        serde_json::from_str(text).map_err(|error| BaselineError(error.to_string()))?;
    if file.schema != BASELINE {
        let found = xmem::types::printable(&file.schema).into_owned();
        return Err(BaselineError(format!("its schema is `{found}`, expected `{BASELINE}`")));
    }
    let table = |table: BTreeMap<String, u64>| {
        table.into_iter().map(|(name, bytes)| (name, Bytes(bytes))).collect()
    };
    let entries = file.entries.into_iter().map(|dto| {
        let entry = BaselineEntry {
            allocated: Bytes(dto.allocated_bytes),
            reserved: Bytes(dto.reserved_bytes),
            by_role: table(dto.by_role),
            by_module: table(dto.by_module),
        };
        ((dto.trace, dto.device), entry)
    });
    Ok(Baseline { entries: entries.collect() })
}
