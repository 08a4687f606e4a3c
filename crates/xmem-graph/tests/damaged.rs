//! Graphs that are not as they should be: an error or an answer, never a panic.

#![expect(clippy::disallowed_methods, reason = "the graphs of tests are files")]

use std::panic::catch_unwind;
use xmem_graph::{Optimizer, Training, Workload, act, pt2};

/// A small generator (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (end.max(1) as u64)).unwrap_or(0)
    }
}

const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "64",
    "1000003",
    "1099511627776",
    "4611686018427387904",
    "9223372036854775807",
    "-5",
];

/// Replaces some whole numbers of the text.
fn with_other_numbers(text: &str, random: &mut Random) -> String {
    let mut pieces: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        pieces.push(before.to_owned());
        pieces.push(from[..end].to_owned());
        rest = &from[end..];
    }
    let is_value = |at: usize, pieces: &[String]| {
        pieces[at - 1].ends_with(": ") || pieces[at - 1].ends_with(", ")
    };
    for _ in 0..=random.below(4) {
        let at = 1 + 2 * random.below(pieces.len() / 2);
        if is_value(at, &pieces) {
            pieces[at] = NUMBERS[random.below(NUMBERS.len())].to_owned();
        }
    }
    pieces.concat() + rest
}

/// Swaps the targets of two operators, or leaves an argument out.
fn with_other_operators(text: &str, random: &mut Random) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let targets: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains("\"target\": \"torch.ops"))
        .map(|(at, _)| at)
        .collect();
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    if let [_, _, ..] = targets.as_slice() {
        let (a, b) = (targets[random.below(targets.len())], targets[random.below(targets.len())]);
        lines.swap(a, b);
    }
    lines.join("\n")
}

fn survives(text: &str) -> Result<(), String> {
    let outcome = catch_unwind(|| {
        let Ok(graph) = pt2::read_model(text) else { return };
        let optimizer = Optimizer::parse("adamw").expect("it is known");
        for training in [None, Some(Training::new(optimizer))] {
            let mut workload = Workload::default();
            workload.training = training;
            workload.iterations = 1;
            let _ = act(&graph, &workload);
        }
    });
    outcome.map_err(|panic| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
            .unwrap_or_default()
    })
}

#[test]
fn damaged_graphs_are_errors() {
    let mut graphs = vec![include_str!("data/convolution.json").to_owned()];
    // More graphs for a longer run.
    if let Ok(folder) = std::env::var("XMEM_GRAPHS") {
        graphs.extend(folder.split(':').filter_map(|path| std::fs::read_to_string(path).ok()));
    }
    let rounds: usize =
        std::env::var("XMEM_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut failures = std::collections::BTreeMap::new();
    for round in 0..rounds {
        let text = &graphs[round % graphs.len()];
        let text = if round % 3 == 0 {
            with_other_operators(text, &mut random)
        } else {
            with_other_numbers(text, &mut random)
        };
        if let Err(message) = survives(&text) {
            *failures.entry(message).or_insert(0) += 1;
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn what_is_no_graph_is_an_error() {
    for text in [
        "",
        "{}",
        "[]",
        "{\"graph_module\": 1}",
        "{\"graph_module\": {\"graph\": {}, \"signature\": {}}}",
    ] {
        assert!(pt2::read_model(text).is_err(), "{text}");
    }
    assert!(pt2::read(b"PK\x03\x04 and nothing").is_err());
    assert!(pt2::read(b"").is_err());
}
