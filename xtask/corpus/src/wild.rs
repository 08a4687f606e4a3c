//! `cargo xtask wild`: public training scripts, as their authors wrote them.
//!
//! Each script of the catalogue is fetched, gets small data, and is recorded by `xmem profile`. The prediction
//! is held against the peaks that PyTorch counted when the same script ran with the CUDA build on a virtual GPU
//! without a recorder in its process: facts that are kept in `xtask/corpus/data/wild/facts.toml`, and recorded again
//! with `--count`.

mod catalogue;
mod facts;
pub(crate) mod fetch;
pub(crate) mod job;
mod judge;
mod record;
mod table;

use crate::error::CorpusError;
use crate::table::Format;
use crate::torch::Engine;
use crate::torch::venv::Venv;
use catalogue::{Catalogue, Run};
use facts::Facts;
use job::Bench;
use judge::Row;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xmem_task::program::{self, Profile};
use xmem_task::{Error, only, repo, run};

/// Catalogue, facts and the Python files of this task.
const DATA: &str = "xtask/corpus/data/wild";

/// What the task does with the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Keeps what PyTorch counts.
    Count,
    /// Shows predictions.
    Predict,
    /// Shows predictions, and fails if a bound is broken.
    Check,
}

/// The traces that are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traces {
    /// Each is recorded.
    New,
    /// Those of earlier calls, where there are any.
    Kept,
}

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// Only runs with one of these in their names; none for all.
    pub only: Vec<String>,
    /// What is done with the runs.
    pub mode: Mode,
    /// The engines that record.
    pub engines: Vec<Engine>,
    /// The traces that are replayed.
    pub traces: Traces,
    /// The form of the table.
    pub format: Format,
    /// The program to drive; none builds it.
    pub program: Option<PathBuf>,
}

/// Counts or predicts the runs that are asked for.
pub fn run(options: &Options) -> Result<(), Error> {
    let catalogue = Catalogue::read()?;
    let xmem = program::find(options.program.as_deref(), Profile::Dev)?;
    run::cargo(&["build", "--quiet", "--package", "xmem-virtual-gpu", "--example", "run"])?;
    let target = repo::target()?;
    let bench = Bench {
        xmem,
        virtual_gpu: target.join("debug").join("examples").join("run"),
        venv: Venv::of_list("wild", &Path::new(DATA).join("packages.txt"))?,
        folder: target.join("wild"),
    };
    let wanted = |run: &&Run| only::selects(&options.only, &run.name);
    let mut facts = Facts::read()?;
    let mut rows = Vec::new();
    let [mut failed, mut skipped] = [0, 0];
    for run in catalogue.runs.iter().filter(wanted) {
        let start = Instant::now();
        let source = match fetch::source(&bench, run)? {
            Ok(source) => source,
            Err(why) => {
                println!("skipped {}: {why}", run.name);
                skipped += 1;
                continue;
            }
        };
        let outcome = match options.mode {
            Mode::Count => record::count(&bench, run, &source)?.map(|fact| {
                let said = fact.to_string();
                facts.keep(fact);
                said
            }),
            Mode::Predict | Mode::Check => {
                predict(&bench, run, &source, &facts, options)?.map(|row| {
                    let said = row.to_string();
                    rows.push(row);
                    said
                })
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(said) => println!("{:32} {seconds:5.1} s  {said}", run.name),
            Err(complaint) => {
                println!("FAILED  {}\n  {}", run.name, complaint.replace('\n', "\n  "));
                failed += 1;
            }
        }
        if options.mode == Mode::Count {
            facts.write()?;
        }
    }
    if rows.is_empty() && failed == 0 && options.mode != Mode::Count {
        return Err(Error::Skipped { reason: "none of the scripts could be fetched" });
    }
    if !rows.is_empty() {
        conclude(&rows, options)?;
    }
    println!("{failed} failed, {skipped} skipped");
    if failed == 0 { Ok(()) } else { Err(Error::Cases { task: "wild", count: failed }) }
}

/// The predictions of a run by each engine, beside its fact.
fn predict(
    bench: &Bench,
    run: &Run,
    source: &fetch::Source,
    facts: &Facts,
    options: &Options,
) -> Result<Result<Row, String>, Error> {
    let fact = match facts.of(run, source, &bench.venv.torch) {
        Ok(fact) => fact.clone(),
        Err(complaint) => return Ok(Err(complaint)),
    };
    let mut row = Row::new(run, source, fact);
    for &engine in &options.engines {
        match record::predict(bench, run, source, engine, options.traces)? {
            Ok(prediction) => row.add(engine, prediction),
            Err(complaint) => return Ok(Err(complaint)),
        }
    }
    Ok(Ok(row))
}

/// Prints the table and what it comes to.
fn conclude(rows: &[Row], options: &Options) -> Result<(), Error> {
    println!();
    table::print(rows, options.format);
    let summary = judge::Summary::of(rows);
    print!("{summary}");
    let broken = summary.broken();
    for what in &broken {
        println!("{what}");
    }
    if options.mode == Mode::Check && !broken.is_empty() {
        return Err(CorpusError::Bounds { task: "wild", count: broken.len() }.into());
    }
    Ok(())
}
