//! Reading a trace of at least 250 MB into columns, beside the floor: the same text cut into
//! chunks and put on simd-json's tape with nothing made of it.
//!
//! The text is a recorded trace (`traces/big_gpt2s_adam_b6`, or the file that `XMEM_BENCH_TRACE`
//! names) whose events are repeated with later times. Besides criterion's wall times it prints
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
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use xmem_trace::{ReadOptions, floor, read_bytes, read_path};

/// Least size of the text.
const SIZE: usize = 250_000_000;
/// Set in the process whose memory is measured, to the path that it reads.
const CHILD: &str = "XMEM_BENCH_READ";

fn main() {
    if let Some(path) = std::env::var_os(CHILD) {
        return read_only(Path::new(&path));
    }
    let text = large_trace();
    let one = ReadOptions { threads: NonZeroUsize::new(1), ..ReadOptions::default() };
    let events = read_bytes(&text, &one).expect("a trace").0.event_count;
    report(&text, events, &one);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("ingest");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    group.bench_function("floor: split", |b| b.iter(|| floor::split(black_box(&text), &one)));
    group.bench_function("floor: split and tape", |b| {
        b.iter(|| floor::split_and_tape(black_box(&text), &one));
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
        let best = (0..5).map(|_| cpu_time(work)).min().expect("five runs");
        megabytes / best.as_secs_f64()
    };
    let split = rate(&|| drop(black_box(floor::split(text, one))));
    let tape = rate(&|| drop(black_box(floor::split_and_tape(text, one))));
    let columns = rate(&|| drop(black_box(read_bytes(text, one))));
    println!("{megabytes:.0} MB, {events} events, one thread, MB per CPU-second (best of 5):");
    println!("  split           {split:8.0}");
    println!("  split and tape  {tape:8.0}  (the floor)");
    println!("  columns         {columns:8.0}  ({:.2} of the floor's time)", tape / columns);

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

/// The time that this thread ran for `work`; wall time where the system does not say.
fn cpu_time(work: &dyn Fn()) -> Duration {
    let ran = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    let (wall, before) = (Instant::now(), ran());
    work();
    match (before, ran()) {
        (Some(before), Some(after)) => after - before,
        _ => wall.elapsed(),
    }
}

/// A recorded trace with its events repeated until the text is large enough.
fn large_trace() -> Vec<u8> {
    let path = std::env::var_os("XMEM_BENCH_TRACE").map_or_else(
        || {
            PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                .join("../traces/big_gpt2s_adam_b6/trace.json.zst")
        },
        PathBuf::from,
    );
    let file = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let plain = if file.starts_with(b"\x28\xb5\x2f\xfd") {
        zstd::decode_all(&file[..]).expect("whole zstd data")
    } else {
        file
    };
    let text = String::from_utf8(plain).expect("a trace in UTF-8");
    let list = text.find("\"traceEvents\": [").expect("an event list") + "\"traceEvents\": [".len();
    let end = text.rfind("\n  ]").expect("the end of the event list");
    let (head, events, tail) = (&text[..list], &text[list..end], &text[end..]);
    let mut large = Vec::with_capacity(SIZE + 2 * events.len());
    large.extend_from_slice(head.as_bytes());
    for round in 0.. {
        if round > 0 {
            large.push(b',');
        }
        push_later(&mut large, events, round * 60_000_000);
        if large.len() >= SIZE {
            break;
        }
    }
    large.extend_from_slice(tail.as_bytes());
    large
}

/// Appends `events` with `micros` added to the whole part of every `ts`.
fn push_later(out: &mut Vec<u8>, events: &str, micros: u64) {
    let mut rest = events;
    while let Some(at) = rest.find("\"ts\": ") {
        let digits = at + "\"ts\": ".len();
        let end = digits + rest[digits..].bytes().take_while(u8::is_ascii_digit).count();
        out.extend_from_slice(&rest.as_bytes()[..digits]);
        let time: u64 = rest[digits..end].parse().expect("a time");
        out.extend_from_slice((time + micros).to_string().as_bytes());
        rest = &rest[end..];
    }
    out.extend_from_slice(rest.as_bytes());
}
