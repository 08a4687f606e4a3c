//! Large traces made of small ones.

#![expect(clippy::disallowed_methods, reason = "benches read recorded traces")]

use std::path::PathBuf;

/// Microseconds between two rounds of the same events.
const LATER: u64 = 60_000_000;

/// The text of a recorded trace (`traces/big_gpt2s_adam_b6`, with Python's stacks) with its events
/// repeated, each time with later times, until it has at least `size` bytes. As in files of Kineto,
/// all operators come first, then all memory events, then all Python calls.
#[must_use]
pub fn trace(size: usize) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../traces/big_gpt2s_adam_b6/trace.json.zst");
    let file = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let plain = zstd::decode_all(&file[..]).expect("whole zstd data");
    let text = String::from_utf8(plain).expect("a trace in UTF-8");
    let list = text.find("\"traceEvents\": [").expect("an event list") + "\"traceEvents\": [".len();
    let end = text.rfind("\n  ]").expect("the end of the event list");
    let (head, events, tail) = (&text[..list], &text[list..end], &text[end..]);
    let memory = start_of(events, "\"cat\": \"cpu_instant_event\"");
    let python = start_of(events, "\"cat\": \"python_function\"");
    let sections = [&events[..memory], &events[memory..python], &events[python..]];
    let rounds = size.div_ceil(events.len()) as u64;

    let mut large = Vec::with_capacity(size + 2 * events.len());
    large.extend_from_slice(head.as_bytes());
    for section in sections {
        for round in 0..rounds {
            push_later(&mut large, section, round * LATER);
            large.push(b',');
        }
    }
    large.pop();
    large.extend_from_slice(tail.as_bytes());
    large
}

/// Where the first event begins that holds this text.
fn start_of(events: &str, text: &str) -> usize {
    let at = events.find(text).expect("such an event");
    events[..at].rfind("{\n").expect("the event's brace")
}

/// Appends `events` with `micros` added to the whole part of every `ts`.
fn push_later(out: &mut Vec<u8>, events: &str, micros: u64) {
    let mut rest = events.trim_end().trim_end_matches(',');
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
