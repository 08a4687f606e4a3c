//! `cargo xtask record-truth`: what `traces/` says about the CUDA side, recorded again on a virtual GPU.
//!
//! Each case is recorded by the command of its `meta.toml`, with PyTorch's CUDA build and without a GPU. The
//! figures are compared with `expected.toml`, the allocator's history with `snapshot.pickle.zst`, or both are
//! written.

mod case;
mod compare;

use crate::torch::venv::Venv;
use case::Case;
use compare::Difference;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xmem_task::program::{self, Profile};
use xmem_task::{Error, repo, run};

/// The packages with which the cases were recorded, and the release of torch among them.
const PACKAGES: &str = "traces/packages.txt";
const TORCH: &str = "2.11.0";

/// What is done with a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is compared with what is kept.
    Check,
    /// It replaces what is kept.
    Write,
}

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// Only these cases; none for all.
    pub cases: Vec<String>,
    /// What is done with the recordings.
    pub mode: Mode,
    /// The interpreter of an environment that has the packages; none makes one.
    pub python: Option<PathBuf>,
    /// The program to drive; none builds it.
    pub program: Option<PathBuf>,
}

/// Records the cases, one after the other: each takes the memory of a process with torch.
pub fn run(options: &Options) -> Result<(), Error> {
    let xmem = program::find(options.program.as_deref(), Profile::Dev)?;
    let python = match &options.python {
        Some(python) => std::path::absolute(python).map_err(Error::file(python))?,
        None => Venv::of_list(TORCH, Path::new(PACKAGES))?.python(),
    };
    let scratch = repo::target()?.join("truth");
    let cases = case::all(&options.cases)?;
    let mut failed = 0;
    let mut equal = [0; 2];
    run::step(&format!("{} cases", cases.len()), || {
        for case in &cases {
            let start = Instant::now();
            let folder = scratch.join(&case.name);
            let outcome = match case.record(&xmem, &python, &folder)? {
                Ok(()) => settle(case, &folder, options.mode)?,
                Err(complaint) => {
                    Outcome { is_wrong: true, texts: vec![complaint], ..Outcome::default() }
                }
            };
            failed += usize::from(outcome.is_wrong);
            equal[0] += usize::from(outcome.peaks_equal);
            equal[1] += usize::from(outcome.history_equal);
            let word = if outcome.is_wrong { "FAILED" } else { "ok" };
            let seconds = start.elapsed().as_secs_f64();
            println!("{word:6} {:36} {seconds:5.1} s  {}", case.name, outcome.texts.join("; "));
        }
        Ok(())
    })?;
    println!(
        "\n{} cases: peaks equal to the byte in {}, the allocator's history in {}; {failed} failed",
        cases.len(),
        equal[0],
        equal[1],
    );
    if failed == 0 { Ok(()) } else { Err(Error::Cases { task: "record-truth", count: failed }) }
}

/// What came of a case.
#[derive(Debug, Default)]
struct Outcome {
    peaks_equal: bool,
    history_equal: bool,
    is_wrong: bool,
    texts: Vec<String>,
}

/// Compares a recording with what is kept, and replaces that if asked for.
fn settle(case: &Case, folder: &Path, mode: Mode) -> Result<Outcome, Error> {
    let [new, kept] = [folder, &case.folder].map(case::expected);
    let (new, kept) = (new?, kept?);
    let differences = compare::figures(&new, &kept);
    let history = compare::histories(folder, &case.folder)?;
    let of_peaks = |d: &&Difference| d.is_of_peaks;
    let mut outcome = Outcome {
        peaks_equal: !differences.iter().any(|d| of_peaks(&d)),
        history_equal: history.is_none(),
        ..Outcome::default()
    };
    outcome.texts.extend(differences.iter().map(ToString::to_string));
    outcome.texts.extend(history);
    match mode {
        Mode::Check => outcome.is_wrong = !outcome.peaks_equal,
        Mode::Write => case.replace(folder, &new, &kept)?,
    }
    Ok(outcome)
}
