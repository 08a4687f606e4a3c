//! The comparison with the figures of an earlier commit.

use super::args::CheckArgs;
use super::error::CheckFailure;
use crate::config::Config;
use crate::error::CliError;
use crate::global::Verbosity;
use crate::input::{self, Kind};
use crate::output;
use crate::output::OutputFailure;
use crate::terminal::{note, shown};
use std::path::{Path, PathBuf};
use xmem_gate::{Baseline, Margin};
use xmem_report::check::{CheckDocument, GrowthDocument, baseline_json, read_baseline};

/// Growth that is accepted where nothing else is said.
const TOLERANCE: Margin = Margin::PerMille(10);

/// A baseline that is to be written.
pub(super) struct Update {
    baseline: Baseline,
    file: PathBuf,
    count: usize,
}

/// Compares the answers with the baseline, if there is one, or takes them over into it.
pub(super) fn apply(
    args: &CheckArgs,
    config: &Config,
    documents: &mut [CheckDocument],
) -> Result<Option<Update>, CliError> {
    let Some(file) = args.baseline.baseline.clone().or_else(|| config.path("baseline")) else {
        return match args.baseline.update_baseline {
            true => Err(CheckFailure::NoBaseline.into()),
            false => Ok(None),
        };
    };
    let known = |document: &CheckDocument| (document.trace.clone(), document.device.name.clone());
    if args.baseline.update_baseline {
        let mut baseline = if file.exists() { read(&file)? } else { Baseline::default() };
        let answered = documents.iter().filter(|document| document.need_bytes.is_some());
        let mut count = 0;
        for document in answered {
            baseline.entries.insert(known(document), document.baseline_entry());
            count += 1;
        }
        return Ok(Some(Update { baseline, file, count }));
    }
    let baseline = read(&file)?;
    let tolerance = args.baseline.tolerance.or_else(|| config.margin("tolerance"));
    for document in documents.iter_mut().filter(|document| document.need_bytes.is_some()) {
        let now = document.baseline_entry();
        let before = baseline.entries.get(&known(document));
        let growth = before.unwrap_or(&now).grown_to(&now, tolerance.unwrap_or(TOLERANCE));
        let mut growth = GrowthDocument::from(&growth);
        growth.is_new = before.is_none();
        document.baseline = Some(growth);
    }
    Ok(None)
}

fn read(file: &Path) -> Result<Baseline, CliError> {
    let bytes = input::raw(file, Kind::Baseline, None)?;
    let text = String::from_utf8_lossy(&bytes);
    read_baseline(&text)
        .map_err(|source| CheckFailure::Baseline { path: file.to_owned(), source }.into())
}

impl Update {
    /// Writes the file.
    pub(super) fn write(&self, verbosity: Verbosity) -> Result<(), CliError> {
        if let Some(folder) = self.file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|source| OutputFailure::File { path: self.file.clone(), source })?;
        }
        output::write(baseline_json(&self.baseline).as_bytes(), Some(&self.file))?;
        let jobs = if self.count == 1 { "job" } else { "jobs" };
        note(&format!("wrote `{}`: {} {jobs}", shown(&self.file), self.count), verbosity);
        Ok(())
    }
}
