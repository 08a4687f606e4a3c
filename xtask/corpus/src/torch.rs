//! `cargo xtask test-torch`: `xmem profile` on real scripts, with real releases of torch.
//!
//! Drives the program as a user would. Each script of `crates/xmem-recorder/tests/scripts` says in its
//! header how it is recorded and what must come out; each model of `models.toml` is recorded by
//! `xmem profile` and by hand, and must come to the same peaks. With `--engine virtual-gpu`, scripts are
//! recorded on a virtual GPU, and the areas of CUDA are checked on it.

mod areas;
mod expect;
mod header;
mod measures;
mod model;
pub(crate) mod process;
mod script;
pub(crate) mod venv;
mod without;

use script::Script;
use std::path::{Path, PathBuf};
use std::time::Instant;
use venv::Venv;
use xmem_task::part::Part;
use xmem_task::program::{self, Profile};
use xmem_task::{Error, TaskError, only, parallel, repo, run};

/// Where scripts, models and lists of packages lie.
const TESTS: &str = "crates/xmem-recorder/tests";
/// How many recordings run at once: torch takes a second and 500 MB to import. Some wait for processes, or for time to pass.
const AT_ONCE: usize = 3;
/// What the answers are about; the scripts are told of the same device.
const DEVICE: &str = "a100-40g";

/// What stands for the GPU (`xmem profile --engine`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// CUDA is redirected to the CPU.
    Cpu,
    /// The CUDA build runs without computing.
    VirtualGpu,
}

/// Which files stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Those of recordings that failed.
    Failed,
    /// All.
    All,
}

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// Only this release.
    pub torch: Option<String>,
    /// Only what has one of these in its name; none for everything.
    pub only: Vec<String>,
    /// Not what has one of these in its name.
    pub except: Vec<String>,
    /// Which part of what is left.
    pub part: Part,
    /// What stands for the GPU.
    pub engine: Engine,
    /// Which files stay.
    pub keep: Keep,
    /// The areas of CUDA on every device, not on one of each compute capability.
    pub every_device: bool,
    /// The program to drive; none builds it.
    pub program: Option<PathBuf>,
    /// How far to go.
    pub extent: Extent,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Make the environments, and record nothing.
    Environments,
    /// Record.
    Recordings,
}

/// What every recording needs to know.
#[derive(Debug)]
struct Bench {
    /// The program under test.
    xmem: PathBuf,
    venv: Venv,
    engine: Engine,
    /// A folder for what the recordings write.
    scratch: PathBuf,
}

/// What came of a recording.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// A word on what was seen, printed where all is well.
    remark: String,
    /// Empty: all is well.
    complaints: Vec<String>,
    /// Peaks of allocated and reserved memory, in bytes, if there is a trace.
    peaks: Option<[f64; 2]>,
}

/// Recordings did not come out as they should; each complaint was printed.
#[derive(Debug, thiserror::Error)]
#[error("test-torch: {count} of the recordings failed, see above")]
struct RecordingsError {
    count: usize,
}

impl TaskError for RecordingsError {}

/// Records and checks everything that is asked for, one release after the other.
pub fn run(options: &Options) -> Result<(), Error> {
    let releases = match &options.torch {
        Some(release) => vec![release.clone()],
        None => releases()?,
    };
    if options.extent == Extent::Environments {
        return releases.iter().try_for_each(|release| Venv::get(release).map(drop));
    }
    let xmem = program::find(options.program.as_deref(), Profile::Dev)?;
    let mut failed = 0;
    for release in releases {
        let scratch = repo::target()?.join("torch").join(format!("{release}-recordings"));
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch).map_err(Error::file(&scratch))?;
        }
        std::fs::create_dir_all(&scratch).map_err(Error::file(&scratch))?;
        let (xmem, engine) = (xmem.clone(), options.engine);
        let bench = Bench { xmem, venv: Venv::get(&release)?, engine, scratch };
        run::step(&format!("torch {release}"), || {
            failed += all(&bench, options)?;
            Ok(())
        })?;
    }
    if failed == 0 { Ok(()) } else { Err(RecordingsError { count: failed }.into()) }
}

/// Records everything with one release; gives how many failed.
fn all(bench: &Bench, options: &Options) -> Result<usize, Error> {
    let selected = |name: &str| {
        only::selects(&options.only, name) && !only::contains_any(name, &options.except)
    };
    let wanted = |name: &str| selected(name) && options.part.contains(name);
    let scripts = script::all()?;
    let models = model::all()?;
    let areas = areas::all(options.every_device)?;
    let mut tasks: Vec<(&str, Task<'_>)> = Vec::new();
    // A script is in the part of the one whose peaks it must have.
    let in_part = |script: &Script| options.part.contains(script.compared_with());
    for script in scripts.iter().filter(|script| selected(&script.name) && in_part(script)) {
        tasks.push((&script.name, Box::new(|| script.check(bench))));
    }
    let by_hand = models.iter().filter(|_| options.engine == Engine::Cpu);
    for model in by_hand.filter(|model| wanted(&model.name)) {
        tasks.push((&model.name, Box::new(|| model.check(bench))));
    }
    let on_virtual_gpus = options.engine == Engine::VirtualGpu;
    for areas in areas.iter().filter(|areas| on_virtual_gpus && wanted(&areas.name)) {
        tasks.push((&areas.name, Box::new(|| areas.check(bench))));
    }
    // They are those of the CUDA build, computed on the CPU; older releases lack some of what they use.
    let newest = releases()?.pop();
    let of_measures = [measures::NAME, measures::ALL].into_iter().filter(|name| {
        let is_asked_for = *name == measures::NAME || options.only.iter().any(|only| only == name);
        let is_newest = newest.as_deref() == Some(&bench.venv.torch);
        options.engine == Engine::Cpu && is_newest && is_asked_for && wanted(name)
    });
    for name in of_measures {
        tasks.push((name, Box::new(move || measures::check(bench, name))));
    }
    let mut outcomes = in_parallel(&tasks)?;
    script::compare_peaks(&scripts, &mut outcomes);
    let failed: Vec<&(String, Outcome)> =
        outcomes.iter().filter(|(_, outcome)| !outcome.complaints.is_empty()).collect();
    for (name, outcome) in &failed {
        println!("\n{name}, see {}:", bench.scratch.join(name).display());
        for complaint in &outcome.complaints {
            println!("  {}", complaint.replace('\n', "\n  "));
        }
    }
    println!("\n{} recordings, {} failed", outcomes.len(), failed.len());
    for (name, outcome) in &outcomes {
        if options.keep == Keep::Failed && outcome.complaints.is_empty() {
            let folder = bench.scratch.join(name);
            std::fs::remove_dir_all(&folder).map_err(Error::file(&folder))?;
        }
    }
    Ok(failed.len())
}

type Task<'a> = Box<dyn Fn() -> Result<Outcome, Error> + Sync + 'a>;

/// Does the tasks, a few at once, and gives what came of each, in their order.
fn in_parallel(tasks: &[(&str, Task<'_>)]) -> Result<Vec<(String, Outcome)>, Error> {
    let outcomes = parallel::map(tasks, AT_ONCE, |(name, task)| {
        let start = Instant::now();
        let outcome = task();
        report(name, start, &outcome);
        Ok(((*name).to_owned(), outcome?))
    });
    outcomes.into_iter().collect()
}

fn report(name: &str, start: Instant, outcome: &Result<Outcome, Error>) {
    let word = match outcome {
        Ok(outcome) if outcome.complaints.is_empty() => "ok",
        _ => "FAILED",
    };
    let remark = outcome.as_ref().map_or("", |outcome| &outcome.remark);
    println!("{word:6} {name:28} {:5.1} s  {remark}", start.elapsed().as_secs_f64());
}

/// The releases that have a list of packages, oldest first.
fn releases() -> Result<Vec<String>, Error> {
    let folder = Path::new(TESTS).join("torch");
    let mut found: Vec<String> = repo::files()?
        .iter()
        .filter(|path| path.parent() == Some(&folder))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    let number = |release: &str| -> Vec<u32> { release.split('.').flat_map(str::parse).collect() };
    found.sort_by_key(|release| number(release));
    Ok(found)
}
