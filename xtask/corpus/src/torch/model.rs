//! A model of `traces/record.py`, trained as a CUDA script under `xmem profile`, and recorded by hand
//! on the CPU: both must come to the same peaks.

use super::process;
use super::script::{self, apart, end_of};
use super::{Bench, Outcome, TESTS};
use crate::error::CorpusError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::{Error, repo};

/// Per cent by which the peaks may differ, if the model does not say.
const WITHIN: f64 = 0.5;
/// In the folder of the tests: trains a model on CUDA, or records it by hand.
const JOB: &str = "train.py";

/// A model with what `traces/record.py` calls it.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) name: String,
    of_file: OfFile,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    model: BTreeMap<String, OfFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct OfFile {
    arguments: Vec<String>,
    within_percent: Option<f64>,
}

/// The models of `models.toml`, by name.
pub(super) fn all() -> Result<Vec<Model>, Error> {
    let path = PathBuf::from(TESTS).join("models.toml");
    let unclear = |error: toml::de::Error| CorpusError::Unusable {
        path: path.clone(),
        what: error.to_string(),
    };
    let models: Models = toml::from_str(&repo::text(&path)?).map_err(unclear)?;
    let named = |(name, of_file)| Model { name, of_file };
    Ok(models.model.into_iter().map(named).collect())
}

impl Model {
    /// Records the model three times and compares.
    pub(super) fn check(&self, bench: &Bench) -> Result<Outcome, Error> {
        let folder = script::folder(bench, &self.name)?;
        let mut outcome = Outcome::default();
        let Some(by_hand) = self.peaks(bench, &folder, "by-hand", &mut outcome)? else {
            return Ok(outcome);
        };
        let mut remark = format!(
            "by hand {:.1} and {:.1} MiB",
            by_hand[0] / 1024.0 / 1024.0,
            by_hand[1] / 1024.0 / 1024.0
        );
        let within = self.of_file.within_percent.unwrap_or(WITHIN);
        for how in ["stacks", "no-stacks"] {
            let Some(peaks) = self.peaks(bench, &folder, how, &mut outcome)? else { continue };
            if let Some(complaint) = apart(peaks, by_hand, within) {
                outcome.complaints.push(format!("--{how}: {complaint} than by hand"));
            }
            let size = |path: PathBuf| path.metadata().map_or(0, |file| file.len());
            remark += &format!(", {how} {} kB", size(folder.join(trace(how))) / 1000);
        }
        outcome.remark = remark;
        Ok(outcome)
    }

    /// Peaks of allocated and reserved memory when recorded in this way.
    fn peaks(
        &self,
        bench: &Bench,
        folder: &Path,
        how: &str,
        outcome: &mut Outcome,
    ) -> Result<Option<[f64; 2]>, Error> {
        let job = repo::root().join(TESTS).join(JOB);
        let mut command;
        if how == "by-hand" {
            command = Command::new(bench.venv.python());
            command.arg(job).arg("--by-hand").arg(folder.join(trace(how)));
            script::set_up(&mut command, folder);
        } else {
            command = script::profile(bench, bench.engine, folder, &trace(how));
            command.arg(format!("--{how}")).arg("--").arg(bench.venv.python()).arg(job);
        }
        command.arg("--").args(&self.of_file.arguments);
        let done = process::run(command, folder, how)?;
        if done.code != Some(0) {
            let end = end_of(&done.stderr);
            outcome
                .complaints
                .push(format!("{how}: exit {:?}, stderr ends with\n{end}", done.code));
            return Ok(None);
        }
        match script::replay(bench, &folder.join(trace(how)), folder)? {
            Ok(answer) if answer["verdict"] == "withheld" => {
                outcome.complaints.push(format!("{how}: no verdict: {}", answer["withheld"]));
                Ok(None)
            }
            Ok(answer) => Ok(script::peaks(&answer)),
            Err(complaint) => {
                outcome.complaints.push(format!("{how}: {complaint}"));
                Ok(None)
            }
        }
    }
}

/// The name of the trace; by hand, torch writes it and compresses nothing.
fn trace(how: &str) -> String {
    let end = if how == "by-hand" { "" } else { ".zst" };
    format!("{how}.json{end}")
}
