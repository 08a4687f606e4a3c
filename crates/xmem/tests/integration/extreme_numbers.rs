//! Estimating ends with an answer or an error, whatever numbers stand in a trace.
#![expect(clippy::disallowed_methods, reason = "the small traces are files")]

#[path = "../../../../fuzz/src/verdict.rs"]
mod verdict;

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use verdict::{NUMBERS, numbers, verdict, with_number};

thread_local! {
    /// Place and message of the last panic of this thread.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The small traces by their names.
fn seeds() -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/verdict");
    let entries = std::fs::read_dir(folder).expect("the folder of seeds");
    let seeds: BTreeMap<String, Vec<u8>> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).expect("a seed"))
        })
        .collect();
    assert!(!seeds.is_empty());
    seeds
}

/// The sizes of tensors: of each list of `Input Dims` the places of all its numbers.
fn shapes(text: &[u8]) -> Vec<Vec<(usize, usize)>> {
    const KEY: &[u8] = b"\"Input Dims\":";
    let starts = text.windows(KEY.len()).enumerate().filter(|(_, window)| *window == KEY);
    starts
        .map(|(start, _)| {
            let from = start + KEY.len();
            let end = text[from..].windows(2).position(|two| two == b"]]").expect("lists");
            let shift = |(first, last): (usize, usize)| (from + first, from + last);
            numbers(&text[from..from + end]).into_iter().map(shift).collect()
        })
        .collect()
}

/// Estimates every case; fails with the place and the first case of each panic.
fn check(cases: impl Iterator<Item = (String, Vec<u8>)>) {
    std::panic::set_hook(Box::new(|panic| {
        // A sum panics in the standard library.
        let frames = Backtrace::force_capture().to_string();
        let ours =
            frames.lines().find(|line| line.contains("/crates/") && !line.contains("/tests/"));
        PANIC.set(format!("{panic}, {}", ours.unwrap_or_default().trim()));
    }));
    let mut panics: BTreeMap<String, String> = BTreeMap::new();
    for (name, text) in cases {
        if std::panic::catch_unwind(|| verdict(&text)).is_err() {
            panics.entry(PANIC.take()).or_insert(name);
        }
    }
    drop(std::panic::take_hook());
    assert!(panics.is_empty(), "{panics:#?}");
}

#[test]
fn small_traces_have_answers() {
    check(seeds().into_iter());
}

#[test]
fn one_extreme_shape_is_no_panic() {
    let cases = seeds().into_iter().flat_map(|(name, text)| {
        let changed = |(position, places): (usize, Vec<(usize, usize)>)| {
            let number = NUMBERS[position % NUMBERS.len()];
            let name = format!("{name}, shape {position}: {number}");
            (name, with_number(&text, &places, number))
        };
        shapes(&text).into_iter().enumerate().map(changed).collect::<Vec<_>>()
    });
    check(cases);
}

#[test]
fn extreme_shapes_everywhere_are_no_panic() {
    let cases = seeds().into_iter().flat_map(|(name, text)| {
        let places: Vec<(usize, usize)> = shapes(&text).into_iter().flatten().collect();
        let changed =
            |number: &str| (format!("{name}: {number}"), with_number(&text, &places, number));
        NUMBERS.map(changed)
    });
    check(cases);
}

#[test]
fn one_extreme_number_is_no_panic() {
    let cases = seeds().into_iter().flat_map(|(name, text)| {
        let changed = |(position, place): (usize, (usize, usize))| {
            let number = NUMBERS[position % NUMBERS.len()];
            let name = format!("{name}, number {position}: {number}");
            (name, with_number(&text, &[place], number))
        };
        // Every number of a trace is too many; a step that shares no factor with the number of numbers
        // reaches all kinds of places.
        numbers(&text).into_iter().enumerate().step_by(7).map(changed).collect::<Vec<_>>()
    });
    check(cases);
}
