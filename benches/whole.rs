//! The whole program, started as a user starts it: `xmem replay` of a trace of at least 500 MB, plain
//! and compressed, beside floors in processes of their own that read the same files on as many
//! threads: cutting into events and simd-json's bare tape, and inflating alone.
//!
//! The text is a recorded trace whose events are repeated with later times (see `large`), or the
//! file that `XMEM_BENCH_TRACE` names, as it is. `XMEM` names the program, which is otherwise
//! `target/release/xmem`, built with `cargo build --release`. Processes take turns, so that other
//! load on the machine meets them all; of each, the median of the rounds counts.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench writes its input, runs programs and prints figures"
)]

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use xmem_benches::{is_wanted, large};
use xmem_trace::{ReadOptions, baseline, read_path};

/// Least size of the text.
const SIZE: usize = 500_000_000;
/// In the environment of the processes that the bench starts: what they are to do.
const TASK: &str = "XMEM_BENCH_TASK";
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Ok(task) = std::env::var(TASK) {
        return child(&task, &arguments[1..]);
    }
    if !is_wanted("whole") {
        return;
    }
    let xmem = std::env::var_os("XMEM").map_or_else(default_program, PathBuf::from);
    if !xmem.is_file() {
        println!("{} is not there: cargo build --release makes it", xmem.display());
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = Files::make(folder.path());
    let events = read_path(&files.plain, &ReadOptions::default()).expect("a trace").0.event_count;
    let megabytes = size(&files.plain) / 1e6;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{megabytes:.0} MB, {events} events, {threads} cores; median of {ROUNDS} rounds");

    let rows = [
        ("floor: split and tape", "floor", &files.plain),
        ("xmem replay", "replay", &files.plain),
        ("inflating .gz alone", "inflate", &files.gzip),
        ("xmem replay .gz", "replay", &files.gzip),
        ("inflating .zst alone", "inflate", &files.zstd),
        ("xmem replay .zst", "replay", &files.zstd),
    ];
    let mut figures = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for (row, (_, task, file)) in rows.iter().enumerate() {
            figures[row].push(measure(task, &xmem, file));
        }
    }
    let medians: Vec<Figures> = figures.iter().map(|runs| Figures::median(runs)).collect();
    println!(
        "{:<24} {:>8} {:>8} {:>9} {:>9} {:>11}  wall / floor's",
        "", "CPU s", "wall s", "MB/CPU s", "cores", "peak memory"
    );
    for (row, (name, ..)) in rows.iter().enumerate() {
        let (figures, floor) = (medians[row], medians[row - row % 2]);
        println!(
            "{name:<24} {:>8.3} {:>8.3} {:>9.0} {:>9.2} {:>8.1} MB  {:.2}",
            figures.cpu,
            figures.wall,
            megabytes / figures.cpu,
            figures.cpu / figures.wall,
            figures.memory / 1e6,
            figures.wall / floor.wall
        );
    }
    let limit = 64e6 + 64.0 * events as f64;
    println!("limit of memory: 64 MB + 64 B per event = {:.1} MB", limit / 1e6);
}

fn default_program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    target.join("release/xmem")
}

fn size(path: &Path) -> f64 {
    std::fs::metadata(path).expect("the file was made").len() as f64
}

/// The same trace in three forms.
struct Files {
    plain: PathBuf,
    gzip: PathBuf,
    zstd: PathBuf,
}

impl Files {
    fn make(folder: &Path) -> Self {
        let at = |name: &str| folder.join(name);
        let files =
            Self { plain: at("trace.json"), gzip: at("trace.json.gz"), zstd: at("trace.json.zst") };
        let text = match std::env::var_os("XMEM_BENCH_TRACE") {
            Some(path) => std::fs::read(&path).expect("XMEM_BENCH_TRACE is a file"),
            None => large::trace(SIZE),
        };
        std::fs::write(&files.plain, &text).expect("room for the trace");
        let file = std::fs::File::create(&files.gzip).expect("a new file");
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        encoder.write_all(&text).and_then(|()| encoder.finish()).expect("room for the trace");
        let file = std::fs::File::create(&files.zstd).expect("a new file");
        zstd::stream::copy_encode(&text[..], file, 3).expect("room for the trace");
        files
    }
}

/// What a process cost.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// Seconds.
    cpu: f64,
    /// Seconds.
    wall: f64,
    /// Bytes.
    memory: f64,
}

impl Figures {
    fn median(runs: &[Self]) -> Self {
        let of = |value: fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self { cpu: of(|f| f.cpu), wall: of(|f| f.wall), memory: of(|f| f.memory) }
    }
}

/// Runs a task in a process, below one that does nothing but wait for it: what a system says of a
/// process' children is of them all.
fn measure(task: &str, xmem: &Path, file: &Path) -> Figures {
    let output = Command::new(std::env::current_exe().expect("own path"))
        .args([xmem, file])
        .env(TASK, format!("wait for {task}"))
        .output()
        .expect("the bench runs itself");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut values = text.split_whitespace().map(|v| v.parse().expect("a figure"));
    let mut next = || values.next().expect("three figures");
    Figures { cpu: next(), wall: next(), memory: next() }
}

fn child(task: &str, arguments: &[String]) {
    let [xmem, file] = arguments else { panic!("two arguments") };
    let path = Path::new(file);
    match task {
        "floor" => {
            baseline::split_and_tape_file(path, &ReadOptions::default()).expect("a trace");
        }
        "inflate" => {
            baseline::inflate_file(path, &ReadOptions::default()).expect("whole data");
        }
        "wait for replay" => {
            let mut command = Command::new(xmem);
            command.args(["replay", file, "--device", "a100-40g", "--cudnn", "model"]);
            wait(command.env_remove(TASK));
        }
        task => {
            let task = task.strip_prefix("wait for ").expect("a task");
            let mut command = Command::new(std::env::current_exe().expect("own path"));
            wait(command.args([xmem, file]).env(TASK, task));
        }
    }
}

/// Runs a command to its end and prints what it cost.
fn wait(command: &mut Command) {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status().expect("the program starts");
    let wall = start.elapsed().as_secs_f64();
    assert!(status.code().is_some_and(|code| code <= 1), "{status}");
    let usage: Usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("known");
    let cpu = (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6;
    println!("{cpu} {wall} {}", usage.max_rss() as f64 * 1024.0);
}
