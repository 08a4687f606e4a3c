//! Reading a trace of at least 250 MB into columns, beside the floor: the same text cut into
//! chunks and put on simd-json's tape with nothing made of it.
//!
//! The text is a recorded trace whose events are repeated with later times (see `large`), or the file
//! that `XMEM_BENCH_TRACE` names, as it is. Besides criterion's wall times it prints
//! CPU time on one thread, which other load on the machine does not blur, and the peak memory of
//! a process that does nothing but read.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench reads its input, measures itself in a process of its own and prints figures"
)]

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use xmem_benches::clock::cpu_time;
use xmem_benches::{is_wanted, large};
use xmem_trace::{EventParser, ReadOptions, baseline, read_bytes, read_path};

/// Least size of the text.
const SIZE: usize = 250_000_000;
/// Set in the process whose memory is measured, to the path that it reads.
const CHILD: &str = "XMEM_BENCH_READ";

fn main() {
    if let Some(path) = std::env::var_os(CHILD) {
        return read_only(Path::new(&path));
    }
    if !is_wanted("ingest") {
        return;
    }
    let text = match std::env::var_os("XMEM_BENCH_TRACE") {
        Some(path) => std::fs::read(&path).expect("XMEM_BENCH_TRACE is a file"),
        None => large::trace(SIZE),
    };
    let one = ReadOptions { threads: NonZeroUsize::new(1), ..ReadOptions::default() };
    let events = read_bytes(&text, &one).expect("a trace").0.event_count;
    report(&text, events, &one);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("ingest");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    group.bench_function("floor: split", |b| b.iter(|| baseline::split(black_box(&text), &one)));
    group.bench_function("floor: split and tape", |b| {
        b.iter(|| baseline::split_and_tape(black_box(&text), &one));
    });
    group.bench_function("columns, one thread", |b| b.iter(|| read_bytes(black_box(&text), &one)));
    group.bench_function("columns, every core", |b| {
        b.iter(|| read_bytes(black_box(&text), &ReadOptions::default()));
    });
    group.finish();
    criterion.final_summary();
}

/// Prints CPU time per stage, and peak memory beside its limit.
fn report(text: &[u8], events: u64, one: &ReadOptions) {
    let megabytes = text.len() as f64 / 1e6;
    let rate = |work: &dyn Fn()| {
        let best = (0..5).map(|_| cpu_time(work).0).min().expect("five runs");
        megabytes / best.as_secs_f64()
    };
    let split = rate(&|| drop(black_box(baseline::split(text, one))));
    let tape = rate(&|| drop(black_box(baseline::split_and_tape(text, one))));
    let columns = rate(&|| drop(black_box(read_bytes(text, one))));
    let by_tape = ReadOptions { parser: EventParser::Tape, ..one.clone() };
    let slow = rate(&|| drop(black_box(read_bytes(text, &by_tape))));
    println!("{megabytes:.0} MB, {events} events, one thread, MB per CPU-second (best of 5):");
    println!("  split           {split:8.0}");
    println!("  split and tape  {tape:8.0}  (the floor)");
    println!("  columns         {columns:8.0}  ({:.2} of the floor's time)", tape / columns);
    println!("  columns by tape {slow:8.0}  ({:.2} of the floor's time)", tape / slow);

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.json");
    std::fs::write(&path, text).expect("room for the trace");
    let limit = 64.0 * 1048.576 + 48.0 * events as f64 / 1000.0;
    let output = Command::new(std::env::current_exe().expect("own path"))
        .env(CHILD, &path)
        .output()
        .expect("the bench runs itself");
    let peak: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(f64::NAN);
    println!(
        "  peak memory     {:8.1} MB  (limit 64 MiB + 48 B per event: {:.1} MB)",
        peak * 1.024 / 1000.0,
        limit / 1000.0
    );
}

/// Reads a trace and prints the process' peak resident memory in KiB (Linux).
fn read_only(path: &Path) {
    let trace = read_path(path, &ReadOptions::default()).expect("a trace");
    black_box(&trace);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!("{}", peak.unwrap_or("NaN").trim().trim_end_matches(" kB"));
}
