//! The vectorized scan against a byte-wise one.

use super::*;
use proptest::prelude::*;

/// The ends of all events by the byte-wise scan, and how it stopped.
fn ends_by_byte(text: &[u8]) -> (Vec<usize>, Stop) {
    let mut scanner = Scanner::default();
    let mut ends = Vec::new();
    let mut at = 0;
    loop {
        match scanner.next_event(text, at) {
            Stop::EventEnd(end) => {
                ends.push(end);
                at = end;
            }
            stop => return (ends, stop),
        }
    }
}

/// The last end by the block-wise scan, the text arriving in two pieces.
fn last_end_by_block(
    text: &[u8],
    cut: usize,
    mut scan: impl FnMut(&mut Scanner, &[u8], usize, Input) -> Stop,
) -> (Option<usize>, Stop) {
    let mut scanner = Scanner::default();
    let stop = match scan(&mut scanner, &text[..cut], 0, Input::Partial) {
        Stop::More(at) => scan(&mut scanner, text, at, Input::Complete),
        stop => stop,
    };
    (scanner.last_end, stop)
}

fn all_scans_agree(text: &[u8], cut: usize) {
    let (ends, stop) = ends_by_byte(text);
    let expected = (ends.last().copied(), stop);
    assert_eq!(last_end_by_block(text, cut, Scanner::scan), expected, "cut at {cut}");
    let portable = |s: &mut Scanner, text: &[u8], from: usize, input: Input| {
        s.scan_blocks(text, from, input, masks_portable, prefix_xor)
    };
    assert_eq!(last_end_by_block(text, cut, portable), expected, "portable, cut at {cut}");
}

#[test]
fn events_end_where_their_braces_close() {
    for (text, ends, stop) in [
        (r#"{"a":1} , {"b":[{}]}]"#, vec![7, 20], Stop::ListEnd(20)),
        (r#"{"a":"]}\"{"},{"b\\":2}"#, vec![13, 23], Stop::More(23)),
        (r#"1,2,"x"]"#, vec![], Stop::ListEnd(7)),
        (r#"{"open":[1,2"#, vec![], Stop::More(12)),
    ] {
        assert_eq!(ends_by_byte(text.as_bytes()), (ends, stop), "{text}");
    }
}

#[test]
fn a_lost_quote_costs_one_event() {
    let text = b"{\n \"name\": \"a\"b\", \"ts\": 1\n },\n {\n \"ph\": \"X\"\n }\n ]}";
    let (ends, stop) = ends_by_byte(text);
    let next = text.iter().rposition(|&b| b == b'{').expect("second event");
    assert_eq!(ends.len(), 2);
    assert!(text[ends[0]..next].iter().all(u8::is_ascii_whitespace));
    assert_eq!(stop, Stop::ListEnd(text.len() - 2));
    for cut in 0..text.len() {
        all_scans_agree(text, cut);
    }
}

#[test]
fn a_lost_quote_in_the_last_event_does_not_hide_the_header_behind_it() {
    let text = b"{\"name\": \"a\"b\"\n}\n ],\n \"traceName\": \"x\"}";
    let bracket = text.iter().position(|&b| b == b']').expect("bracket");
    assert_eq!(ends_by_byte(text), (vec![], Stop::ListEnd(bracket)));
}

#[test]
fn nesting_has_a_limit() {
    let deep = vec![b'['; MAX_DEPTH as usize + 1];
    all_scans_agree(&deep, 100);
    assert_eq!(ends_by_byte(&deep).1, Stop::TooDeep(MAX_DEPTH as usize));
}

const PIECES: &[&str] = &[
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "\n",
    "{\"ph\":",
    "aaaaaaaaaaaaaaaaaaaaaaaaaa",
    ",",
    "\n ], \"ERROR\": ",
    "[[[[[",
    " ",
];

proptest! {
    #[test]
    fn block_scans_agree_with_the_byte_scan(
        text in proptest::collection::vec(
            proptest::sample::select(PIECES),
            0..200,
        ),
        cut in 0.0..1.0f64,
    ) {
        let text = text.concat().into_bytes();
        all_scans_agree(&text, (text.len() as f64 * cut) as usize);
    }
}
