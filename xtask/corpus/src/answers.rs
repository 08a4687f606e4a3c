//! `cargo xtask answers`: the JSON answers of all recorded traces, before and after a change.
//!
//! `--save` writes what a program answers; `--compare` asks a program again and reports each number and
//! each text that differs. What was renamed on purpose is listed in `answers/renamed.toml`.

mod compare;
mod difference;
mod renamed;
mod set;

use compare::Comparison;
use renamed::Renamed;
use set::SETS;
use std::path::{Path, PathBuf};
use xmem_task::program::{self, Profile};
use xmem_task::{Error, TaskError, repo};

/// Differences of one JSON path that are printed; the others are counted.
const EXAMPLES: usize = 4;

/// What to do with the answers.
#[derive(Debug)]
pub enum Mode {
    /// Write them to a folder.
    Save(PathBuf),
    /// Compare them with those in a folder.
    Compare(PathBuf),
}

/// What to run.
#[derive(Debug)]
pub struct Options {
    /// Save or compare.
    pub mode: Mode,
    /// The program to ask; none builds it.
    pub program: Option<PathBuf>,
}

/// Answers differ from saved ones; each difference was printed or counted.
#[derive(Debug, thiserror::Error)]
#[error(
    "answers: {count} differences, see above; list what is meant in xtask/corpus/src/answers/renamed.toml"
)]
struct DifferencesError {
    count: usize,
}

impl TaskError for DifferencesError {}

/// Asks the program for every set of answers, and saves or compares them.
pub fn run(options: Options) -> Result<(), Error> {
    let program = program::find(options.program.as_deref(), Profile::Dev)?;
    match options.mode {
        Mode::Save(folder) => save(&program, &folder),
        Mode::Compare(folder) => compare(&program, &folder),
    }
}

fn save(program: &Path, folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    for set in &SETS {
        let path = folder.join(set.file());
        let text = set.ask(program)?;
        std::fs::write(&path, &text).map_err(Error::file(&path))?;
        println!("{:<16} {:>4} answers", set.name, text.lines().count());
    }
    Ok(())
}

fn compare(program: &Path, folder: &Path) -> Result<(), Error> {
    let renamed = Renamed::read()?;
    let kept = repo::target()?.join("answers");
    std::fs::create_dir_all(&kept).map_err(Error::file(&kept))?;
    let mut differences = 0;
    for set in &SETS {
        let path = folder.join(set.file());
        let before = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
        let after = set.ask(program)?;
        let path = kept.join(set.file());
        std::fs::write(&path, &after).map_err(Error::file(&path))?;
        let comparison = Comparison::of(&before, &after, &renamed).map_err(Error::Answer)?;
        println!("{:<16} {}", set.name, comparison.summary());
        print!("{}", difference::listing(&comparison.differences, EXAMPLES));
        differences += comparison.differences.len();
    }
    if differences == 0 {
        return Ok(());
    }
    println!("the answers of now are in {}", kept.display());
    Err(DifferencesError { count: differences }.into())
}
