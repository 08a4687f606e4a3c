//! `cargo xtask instructions`: how many instructions `xmem replay` takes, held against kept counts.
//!
//! Times on shared machines say little; counts of the same program on the same trace are the same but
//! for a thousandth. Recorded traces guard what an event costs. Synthetic traces in two sizes guard that
//! four times the events cost four times as much, in each dimension in which a job can grow and in odd
//! corners; what they guard needs no kept counts.

mod callgrind;
mod kept;

use callgrind::Count;
use kept::Kept;
use std::path::{Path, PathBuf};
use xmem_benches::synthetic::{Corner, Training};
use xmem_task::expected::{self, Mode};
use xmem_task::program::{self, Profile};
use xmem_task::{Error, TaskError, parallel, repo};

/// Recorded traces that are counted: a small one, and one with convolutions and Python's stacks.
const RECORDED: [&str; 2] = ["mlp_adam", "resnet18_sgdm"];

/// How much more than the kept count passes. Compiling incrementally or not makes 2 %; another compiler, another libc or a processor without
/// AVX2 moves counts by some percent, and so does a small rule; a lost fast path, a copy of a table or
/// an allocation for each event costs more than this.
const MORE: f64 = 1.15;

/// Four times the events may cost this much: sorting takes n log n, and so do ordered maps.
const FOURFOLD: f64 = 4.6;

/// Counts of instructions are too high; each was printed.
#[derive(Debug, thiserror::Error)]
#[error(
    "instructions: {count} counts are too high, see above; if that is meant, UPDATE_EXPECT=1 cargo xtask instructions"
)]
struct CountsError {
    count: usize,
}

impl TaskError for CountsError {}

/// A trace in two sizes.
struct Pair {
    name: &'static str,
    once: Vec<u8>,
    fourfold: Vec<u8>,
}

/// Counts, then checks or keeps. Without a program, one is built.
pub(crate) fn run(program: Option<&Path>) -> Result<(), Error> {
    callgrind::is_there()?;
    let program = program::find(program, Profile::Dev)?;
    let folder = repo::target()?.join("instructions");
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let (names, traces) = traces(&folder)?;
    let counts = count(&program, &traces, &folder)?;
    let (recorded, synthetic) = counts.split_at(RECORDED.len());
    let (start, grown) = synthetic.split_first().expect("a trace of next to nothing");
    let mut broken = grown_too_much(start.total, &names, grown);
    let recorded: Vec<(&str, &Count)> = RECORDED.into_iter().zip(recorded).collect();
    match expected::mode() {
        Mode::Update => kept::write(&recorded)?,
        Mode::Compare => broken += check(&recorded, &kept::read()?),
    }
    if broken == 0 { Ok(()) } else { Err(CountsError { count: broken }.into()) }
}

/// How many pairs cost too much beyond what it takes to start; says of each what it costs.
fn grown_too_much(start: u64, names: &[&str], counts: &[Count]) -> usize {
    let mut broken = 0;
    for (name, pair) in names.iter().zip(counts.chunks(2)) {
        let [once, fourfold] = [0, 1].map(|row| pair[row].total.saturating_sub(start) as f64);
        let ratio = fourfold / once;
        let line = format!("{name:<34} {:>7.1} M, four times the events {ratio:.2}", once / 1e6);
        println!("{line} times that");
        if ratio > FOURFOLD {
            broken += 1;
            println!("  more than {FOURFOLD} times; what grew most:");
            print!("{}", pair[1].growth(&pair[0].functions, 4.0));
        }
    }
    broken
}

/// How many of the counts are too high; says of each how it compares.
fn check(recorded: &[(&str, &Count)], kept: &Kept) -> usize {
    let mut broken = 0;
    for (name, count) in recorded {
        let millions = count.total as f64 / 1e6;
        let Some(before) = kept.trace.get(*name) else {
            println!(
                "{name:<34} {millions:>7.1} M, not kept: UPDATE_EXPECT=1 cargo xtask instructions"
            );
            broken += 1;
            continue;
        };
        let ratio = count.total as f64 / before.total as f64;
        println!(
            "{name:<34} {millions:>7.1} M, {:+.1} % since {}",
            (ratio - 1.0) * 100.0,
            kept.commit
        );
        if ratio > MORE {
            broken += 1;
            println!("  more than {:+.0} %; what grew most:", (MORE - 1.0) * 100.0);
            print!("{}", count.growth(&before.functions, 1.0));
        } else if ratio < 1.0 / MORE {
            println!("  much less: keep it with UPDATE_EXPECT=1 cargo xtask instructions");
        }
    }
    broken
}

/// The names of the pairs, and all files: recorded traces, one with next to nothing in it, then each
/// pair's two.
fn traces(folder: &Path) -> Result<(Vec<&'static str>, Vec<PathBuf>), Error> {
    let recorded = RECORDED.iter().map(|name| repo::root().join("traces").join(name));
    let mut files: Vec<PathBuf> = recorded.map(|folder| folder.join("trace.json.zst")).collect();
    let mut names = Vec::new();
    let nothing = folder.join("nothing.json");
    let job = Training { iterations: 1, layers: 1, depth: 0, threads: 0 };
    std::fs::write(&nothing, job.trace()).map_err(Error::file(&nothing))?;
    files.push(nothing);
    for Pair { name, once, fourfold } in pairs() {
        for (times, text) in [(1, once), (4, fourfold)] {
            let path = folder.join(format!("{name} x{times}.json"));
            std::fs::write(&path, text).map_err(Error::file(&path))?;
            files.push(path);
        }
        names.push(name);
    }
    Ok((names, files))
}

/// Some four thousand events each, and four times as many.
fn pairs() -> Vec<Pair> {
    let grown = |name, job: fn(usize) -> Training, size: usize| Pair {
        name,
        once: job(size).trace(),
        fourfold: job(4 * size).trace(),
    };
    let mut pairs = vec![
        grown("iterations", |iterations| Training { iterations, ..Training::default() }, 10),
        grown("live blocks", |layers| Training { layers, ..Training::default() }, 25),
        grown("depth", |depth| Training { depth, iterations: 2, layers: 1, threads: 0 }, 500),
        grown(
            "threads",
            |n| Training { threads: n as u32, iterations: 2, layers: 1, depth: 0 },
            500,
        ),
    ];
    for corner in [
        Corner::EqualTimes,
        Corner::OneOperator,
        Corner::FreedInDisorder,
        Corner::ManyThreads,
        Corner::NestedCalls,
        Corner::ConcurrentProducts,
        Corner::BackwardOnly,
    ] {
        let [once, fourfold] = [4_000, 16_000].map(|events| corner.trace(events));
        pairs.push(Pair { name: corner.name(), once, fourfold });
    }
    pairs
}

/// Counts every trace, as many at once as there are cores.
fn count(program: &Path, traces: &[PathBuf], folder: &Path) -> Result<Vec<Count>, Error> {
    let traces: Vec<(usize, &PathBuf)> = traces.iter().enumerate().collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let counts = parallel::map(&traces, cores, |(row, trace)| {
        callgrind::count(program, trace, &folder.join(format!("{row}.callgrind")))
    });
    counts.into_iter().collect()
}
