//! `cargo xtask published`: figures that others measured on GPUs and published with their scripts, beside what PyTorch
//! counts when the same scripts run on a virtual GPU of the same kind.
//!
//! `xtask/corpus/data/published` has a catalogue of the sources, their figures (facts, each with the commit of its
//! script), and the results of earlier calls. Scripts are fetched. What all of it comes to is a page of the book, which
//! is written from figures and results alone.

mod catalogue;
mod figures;
mod page;
mod record;

use crate::torch::venv::Venv;
use catalogue::Source;
use figures::{Figure, Results};
use record::Bench;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xmem_task::program::{self, Profile};
use xmem_task::{Error, only, repo, run};

/// Catalogue, figures, drivers and results.
const DATA: &str = "xtask/corpus/data/published";

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// Only groups of figures with one of these in `SOURCE/GROUP`; none for all.
    pub only: Vec<String>,
    /// Copies of repositories that need not be fetched: `OWNER/NAME=FOLDER`.
    pub repositories: Vec<String>,
    /// Only writes the page from the results that are there.
    pub page_only: bool,
    /// The program to drive; none builds it.
    pub program: Option<PathBuf>,
}

/// Runs the groups that are asked for, keeps their results, and writes the page.
pub fn run(options: &Options) -> Result<(), Error> {
    let sources = catalogue::read()?;
    let mut failed = 0;
    if !options.page_only {
        let xmem = program::find(options.program.as_deref(), Profile::Dev)?;
        run::cargo(&["build", "--quiet", "--package", "xmem-virtual-gpu", "--example", "run"])?;
        for source in &sources {
            failed += record_source(source, &xmem, options)?;
        }
    }
    page::write(&sources)?;
    if failed == 0 { Ok(()) } else { Err(Error::Cases { task: "published", count: failed }) }
}

/// Runs the groups of a source; gives the number of those in which nothing ran.
fn record_source(source: &Source, xmem: &Path, options: &Options) -> Result<usize, Error> {
    let figures_of_source = source.figures()?;
    let mut groups: BTreeMap<&figures::Run, Vec<&Figure>> = BTreeMap::new();
    for figure in &figures_of_source {
        if only::selects(&options.only, &format!("{}/{}", source.name, figure.run.group)) {
            groups.entry(&figure.run).or_default().push(figure);
        }
    }
    if groups.is_empty() {
        return Ok(0);
    }
    let target = repo::target()?;
    let bench = Bench {
        xmem: xmem.to_owned(),
        virtual_gpu: target.join("debug").join("examples").join("run"),
        folder: target.join("published"),
    };
    let repository = match bench.repository(source, &options.repositories)? {
        Ok(repository) => repository,
        Err(why) => {
            println!("skipped {}: {why}", source.name);
            return Ok(0);
        }
    };
    let mut results = Results::read(&source.name)?;
    let mut failed = 0;
    for (run, figures) in groups {
        let start = Instant::now();
        let list = source.environment_of(&run.packages);
        let venv = Venv::of_list(environment_name(list), Path::new(list))?;
        let outcome = bench.record(source, run, &repository, &venv)?;
        let measured = figures.iter().filter(|figure| outcome.contains_key(&figure.key)).count();
        println!(
            "{:40} {:16} {:3} of {:3} figures  {:5.1} s",
            format!("{}/{}", source.name, run.group),
            run.device,
            measured,
            figures.len(),
            start.elapsed().as_secs_f64(),
        );
        if measured == 0 {
            failed += 1;
        }
        results.replace(run, outcome);
        results.keep_only(&figures_of_source);
        results.write(&source.name)?;
    }
    Ok(failed)
}

/// The name of an environment with the packages of a list: that of the folder of a list with the name `packages.txt`.
fn environment_name(list: &str) -> &str {
    let path = Path::new(list);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(list);
    match path.parent().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some(folder) if stem == "packages" => folder,
        _ => stem,
    }
}

/// A file of this task.
fn data(name: &str) -> PathBuf {
    repo::root().join(DATA).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_named_by_its_list() {
        assert_eq!(environment_name("xtask/corpus/data/wild/packages.txt"), "wild");
        assert_eq!(environment_name("xtask/corpus/data/published/torch-2.4.1.txt"), "torch-2.4.1");
    }

    #[test]
    fn every_group_of_figures_has_a_source_that_can_run_it() {
        for source in catalogue::read().expect("the catalogue") {
            assert!(data(&source.driver).is_file(), "{}", source.driver);
            for list in source.environments.values().chain([&source.environment]) {
                assert!(repo::root().join(list).is_file(), "{list}");
            }
            let figures = source.figures().expect("its figures");
            assert!(!figures.is_empty(), "{}", source.name);
            for figure in &figures {
                let packages = &figure.run.packages;
                let known = source.packages.contains_key(packages)
                    || source.environments.contains_key(packages);
                assert!(packages == "-" || known, "{packages}");
            }
            for group in source.cause.keys() {
                assert!(figures.iter().any(|figure| figure.run.group == *group), "{group}");
            }
        }
    }
}
