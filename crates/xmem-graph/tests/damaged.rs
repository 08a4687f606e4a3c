//! Graphs that are not as they should be: an error or an answer, never a panic.

#![expect(clippy::disallowed_methods, reason = "the graphs of tests are files")]

use std::panic::{UnwindSafe, catch_unwind};
use std::path::Path;
use xmem_graph::{Optimizer, Training, Workload, act, onnx, pt2};

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

/// What a run returns, or the message of its panic.
fn outcome<T>(run: impl FnOnce() -> T + UnwindSafe) -> Result<T, String> {
    catch_unwind(run).map_err(|panic| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
            .unwrap_or_default()
    })
}

/// A short run in inference, and one in training.
fn workloads() -> [Workload; 2] {
    let optimizer = Optimizer::parse("adamw").expect("it is known");
    [None, Some(Training::new(optimizer))].map(|training| {
        let mut workload = Workload::default();
        workload.training = training;
        workload.iterations = 1;
        workload
    })
}

fn rounds() -> usize {
    std::env::var("XMEM_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

fn survives(text: &str) -> Result<(), String> {
    outcome(|| {
        let Ok(graph) = pt2::read_model(text) else { return };
        for workload in workloads() {
            let _ = act(&graph, &workload);
        }
    })
}

#[test]
fn damaged_graphs_are_errors() {
    let mut graphs = vec![include_str!("data/convolution.json").to_owned()];
    // More graphs for a longer run.
    if let Ok(folder) = std::env::var("XMEM_GRAPHS") {
        graphs.extend(folder.split(':').filter_map(|path| std::fs::read_to_string(path).ok()));
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut failures = std::collections::BTreeMap::new();
    for round in 0..rounds() {
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

/// Bytes that are small and large numbers, keys of fields, and ends of long numbers.
const BYTES: [u8; 12] = [0, 1, 2, 3, 7, 8, 0x0a, 0x12, 0x3a, 0x7f, 0x80, 0xff];

/// Changes some bytes, cuts the file off, or repeats a part of it.
fn damaged(model: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = model.to_vec();
    match random.below(8) {
        0 => bytes.truncate(random.below(model.len())),
        1 => {
            let at = random.below(model.len());
            let end = (at + random.below(200)).min(model.len());
            bytes.splice(at..at, model[at..end].iter().copied());
        }
        _ => {
            for _ in 0..=random.below(5) {
                let at = random.below(bytes.len());
                bytes[at] = BYTES[random.below(BYTES.len())];
            }
        }
    }
    bytes
}

fn survives_model(bytes: Vec<u8>) -> Result<bool, String> {
    outcome(|| {
        let Ok(model) = onnx::read(bytes) else { return false };
        workloads().into_iter().all(|mut workload| {
            workload.batch = Some(2);
            let Ok(graph) = model.graph(&workload) else { return false };
            workload.batch = None;
            let _ = act(&graph, &workload);
            true
        })
    })
}

fn models() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/graphs/onnx");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the models")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "onnx"))
        .collect();
    paths.sort();
    let read = |path| std::fs::read(path).expect("a file");
    paths.into_iter().map(read).filter(|model: &Vec<u8>| model.len() < 64 << 10).collect()
}

#[test]
fn damaged_models_are_errors() {
    let models = models();
    assert!(models.len() >= 5);
    let rounds = rounds();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut failures = std::collections::BTreeMap::new();
    let mut whole = 0;
    for round in 0..rounds {
        match survives_model(damaged(&models[round % models.len()], &mut random)) {
            Ok(is_whole) => whole += usize::from(is_whole),
            Err(message) => *failures.entry(message).or_insert(0) += 1,
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(whole * 10 > rounds, "the damage is too great: {whole} of {rounds} were run");
}

/// A field of bytes.
fn field(number: u8, inside: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = inside.len();
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap_or(0));
    bytes.extend_from_slice(inside);
    bytes
}

/// A model of a graph.
fn file(graph: &[u8]) -> Vec<u8> {
    [&[0x08, 0x08][..], &field(7, graph)].concat()
}

#[test]
fn hostile_models_are_errors_in_plain_words() {
    let node = |inputs: &[&str], output: &str, operator: &str| {
        let inputs: Vec<u8> = inputs.iter().flat_map(|name| field(1, name.as_bytes())).collect();
        field(1, &[inputs, field(2, output.as_bytes()), field(4, operator.as_bytes())].concat())
    };
    let output = field(12, &field(1, b"z"));
    let cycle = [node(&["z"], "y", "Relu"), node(&["y"], "z", "Relu"), output.clone()].concat();
    // Dimensions as numbers that are not packed: 2^62 and 2^62.
    let large = [0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
    let negative = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let weight = |dims: &[u8]| field(5, &[dims, &[0x10, 0x01], &field(8, b"w")[..]].concat());
    let of_weight =
        |dims: &[u8]| [weight(dims), node(&["w"], "z", "Relu"), output.clone()].concat();
    let mut nested = field(1, &field(4, b"Relu"));
    for _ in 0..60 {
        nested = field(1, &field(5, &field(6, &nested)));
    }
    for (graph, message) in [
        (Vec::new(), "it has no outputs"),
        (cycle, "`z` is used before it is computed"),
        (of_weight(&[large, large].concat()), "larger than any machine's memory"),
        (of_weight(&negative), "the size -1"),
        ([node(&[], "z", "Conv"), output.clone()].concat(), "an argument is missing"),
        ([node(&["x"], "z", "Relu"), output].concat(), "`x` is used before it is computed"),
        (nested, "recursion limit"),
        ([0x0a, 0x00].repeat(3_000_000), "more than 2097152"),
    ] {
        let model = onnx::read(file(&graph)).and_then(|model| model.graph(&Workload::default()));
        let text = match model {
            Ok(_) => "a graph".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(text.contains(message), "{text}");
    }
}
