//! Models of ONNX that are not as they should be: an error or an answer, never a panic.

#![expect(clippy::disallowed_methods, reason = "the models of tests are files")]

use std::panic::catch_unwind;
use std::path::Path;
use xmem_graph::{Optimizer, Training, Workload, act, onnx};

/// A small generator (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }
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

fn survives(bytes: Vec<u8>) -> Result<bool, String> {
    let outcome = catch_unwind(|| {
        let Ok(model) = onnx::read(bytes) else { return false };
        let optimizer = Optimizer::parse("adamw").expect("it is known");
        for training in [None, Some(Training::new(optimizer))] {
            let mut workload = Workload::default();
            workload.training = training;
            workload.iterations = 1;
            workload.batch = Some(2);
            let Ok(graph) = model.graph(&workload) else { return false };
            workload.batch = None;
            let _ = act(&graph, &workload);
        }
        true
    });
    outcome.map_err(|panic| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
            .unwrap_or_default()
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
    let rounds: usize =
        std::env::var("XMEM_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut failures = std::collections::BTreeMap::new();
    let mut whole = 0;
    for round in 0..rounds {
        match survives(damaged(&models[round % models.len()], &mut random)) {
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
