//! Input that is damaged, hostile or something else entirely.
#![allow(clippy::disallowed_methods, reason = "tests write the files that they read")]

use crate::support;

use expect_test::{Expect, expect};
use std::io::{Read, Write};
use std::path::Path;
use support::read_with;
use xmem_trace::{ReadError, ReadOptions, read_bytes, read_path, reference};
use xmem_types::{Bytes, ExceededLimit};

fn error(bytes: &[u8]) -> ReadError {
    match read_bytes(bytes, &ReadOptions::default()) {
        Err(error) => error,
        Ok((_, diagnostics)) => panic!("it was read: {diagnostics:?}"),
    }
}

fn check_error(bytes: impl AsRef<[u8]>, expected: &Expect) {
    expected.assert_eq(&error(bytes.as_ref()).to_string());
}

fn gzip(mut text: impl Read) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut text, &mut encoder).expect("in memory");
    encoder.finish().expect("in memory")
}

fn zstd(text: impl Read) -> Vec<u8> {
    zstd::encode_all(text, 1).expect("in memory")
}

/// A trace of `events` operators.
fn trace(events: usize) -> Vec<u8> {
    let mut text = b"{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n".to_vec();
    for i in 0..events {
        let comma = if i + 1 < events { "," } else { "" };
        writeln!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op{}\", \"pid\": 1, \"tid\": 1,\n    \"ts\": {i}.125, \"dur\": 0.500,\n    \"args\": {{\n      \"Input Dims\": [[{i}], []], \"Ev Idx\": {i}\n    }}\n  }}{comma}",
            i % 10
        )
        .expect("in memory");
    }
    text.extend_from_slice(b"  ],\n  \"traceName\": \"x.json\"\n}\n");
    text
}

#[test]
fn the_head_that_an_error_shows_does_not_depend_on_where_the_text_is_cut() {
    let text = format!("{}not a trace at all", "\n".repeat(62));
    for chunk in [1, 64, 70, 1 << 20] {
        let options = ReadOptions { chunk: Bytes(chunk), ..ReadOptions::default() };
        let error = read_bytes(text.as_bytes(), &options).expect_err("no trace").to_string();
        assert!(error.contains("begins with `not a trace at a`"), "{chunk}: {error}");
    }
}

#[test]
fn what_is_no_trace_is_said_to_be_none() {
    check_error(
        "",
        &expect![
            "`<bytes>` is empty: the profiler writes its trace only after the profiled block ends"
        ],
    );
    check_error(
        " \n",
        &expect![
            "`<bytes>` is empty: the profiler writes its trace only after the profiled block ends"
        ],
    );
    check_error(
        "hello",
        &expect![
            "`<bytes>` is not a profiler trace (it begins with `hello`, not with a bracket): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        "PK\x03\x04....",
        &expect![
            "`<bytes>` is not a profiler trace (it begins like a zip archive: unpack it): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        "\u{0}\u{0}\u{0}\u{0}\u{0}",
        &expect![[
            r#"`<bytes>` is not a profiler trace (it begins with `\0\0\0\0\0`, not with a bracket): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"#
        ]],
    );
    check_error(
        "{}",
        &expect![
            "`<bytes>` is not a profiler trace (it has no `traceEvents` list): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        r#"{"nodes": [{"id": 1}], "schema": "1.1"}"#,
        &expect![
            "`<bytes>` is not a profiler trace (it has no `traceEvents` list): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        r#"{"traceEvents": {"a": 1}}"#,
        &expect![
            "`<bytes>` is not a profiler trace (it has no `traceEvents` list): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        r#"{"schemaVersion": 1, "deviceProp"#,
        &expect![
            "`<bytes>` is not a profiler trace (it has no `traceEvents` list): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        "[]",
        &expect![
            "`<bytes>` is not a profiler trace (a list without events): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        r#"[1, 2, {"a": 3}]"#,
        &expect![
            "`<bytes>` is not a profiler trace (a list without events): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        r#"{traceEvents: []}"#,
        &expect![
            "`<bytes>` is not a profiler trace (at byte 1 a key should stand): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        "\u{feff}{\"a\" 1}",
        &expect![
            "`<bytes>` is not a profiler trace (key `a` is not followed by a colon): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
    check_error(
        vec![b' '; 2 << 20],
        &expect![
            "`<bytes>` is not a profiler trace (it begins with white space only): give what `export_chrome_trace` of torch.profiler wrote, plain, gzip or zstd"
        ],
    );
}

#[test]
fn paths_that_cannot_be_read_are_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let read = |path: &Path| read_path(path, &ReadOptions::default());
    assert!(matches!(read(folder.path()), Err(ReadError::Directory { .. })));
    let missing = folder.path().join("missing.json");
    assert!(matches!(read(&missing), Err(ReadError::NotFound { .. })));
    let empty = folder.path().join("empty.json");
    std::fs::write(&empty, "").expect("writable");
    assert!(matches!(read(&empty), Err(ReadError::Empty { .. })));
}

#[test]
fn everything_before_a_cut_counts() {
    let text = trace(50);
    let (whole, _) = reference::read(&text).expect("a trace");
    let list = text.windows(3).position(|w| w == b"[\n ").expect("the list") + 1;
    for cut in (list..text.len() - 2).step_by(7) {
        let cut_text = &text[..cut];
        let complete = cut_text.windows(4).filter(|w| w == b"\n  }").count();
        for (chunk, threads) in [(256 << 10, 1), (100, 2)] {
            let (read, diagnostics) = read_with(cut_text, chunk, threads);
            assert_eq!(read.ops.len(), complete, "cut at {cut}, chunk {chunk}");
            assert_eq!(read.ops.start[..], whole.ops.start[..complete]);
            assert_eq!(diagnostics.get("truncated").map(|d| d.count), Some(1), "cut at {cut}");
            assert!(diagnostics.get("bad-event").is_none(), "cut at {cut}: {diagnostics:?}");
        }
    }
}

#[test]
fn compressed_files_that_break_off_count_up_to_there() {
    let text = trace(20_000);
    for packed in [gzip(&text[..]), zstd(&text[..])] {
        let cut = &packed[..packed.len() / 2];
        let (trace, diagnostics) = read_bytes(cut, &ReadOptions::default()).expect("a trace");
        assert!((1000..19_000).contains(&trace.ops.len()), "{} events", trace.ops.len());
        let codes: Vec<_> = diagnostics.iter().map(|d| (d.code, d.count)).collect();
        assert_eq!(codes, [("truncated", 1)]);
    }
}

#[test]
fn damaged_compressed_data_is_an_error() {
    let text = trace(20_000);
    for (name, mut packed) in [("gzip", gzip(&text[..])), ("zstd", zstd(&text[..]))] {
        let middle = packed.len() / 2;
        packed[middle..middle + 64].fill(0xff);
        match error(&packed) {
            ReadError::Compressed { format, .. } => assert_eq!(format, name),
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn bombs_are_refused_without_being_held_in_memory() {
    let spaces = || std::io::repeat(b' ').take(300 << 20);
    let events = || b"{\"traceEvents\": [".chain(std::io::repeat(b',').take(300 << 20));
    let limit = ReadOptions { inflate_limit: Bytes::mib(64), ..ReadOptions::default() };
    for (name, packed) in [
        ("gzip", gzip(events())),
        ("zstd", zstd(events())),
        ("one event", zstd(b"[{\"name\": \"".chain(spaces()))),
        ("one header value", zstd(b"{\"name\": \"".chain(spaces()))),
        ("white space behind the end", zstd(b"[{\"ph\": \"X\"}]".chain(spaces()))),
    ] {
        match read_bytes(&packed, &limit) {
            Err(ReadError::InflateLimit { limit, .. }) => {
                assert_eq!(limit, ExceededLimit::Size(Bytes::mib(64)));
            }
            other => panic!("{name}: {:?}", other.map(|(_, diagnostics)| diagnostics)),
        }
    }
}

#[test]
fn text_beyond_the_limits_is_refused_whether_inflated_or_plain() {
    let events = || b"{\"traceEvents\": [".chain(std::io::repeat(b',').take(300 << 20));
    let packed = zstd(events());
    let refused = read_bytes(&packed, &ReadOptions::default()).expect_err("a bomb");
    let ReadError::InflateLimit { limit, .. } = refused else { panic!("{refused}") };
    assert_eq!(limit, ExceededLimit::Ratio(250));
    let genuine = ReadOptions { ratio_limit: None, ..ReadOptions::default() };
    assert!(!matches!(read_bytes(&packed, &genuine), Err(ReadError::InflateLimit { .. })));
    let small = ReadOptions { inflate_limit: Bytes(40), ..ReadOptions::default() };
    let plain = br#"{"traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 1, "dur": 1}]}"#;
    let refused = read_bytes(plain, &small).expect_err("too long");
    assert!(matches!(
        refused,
        ReadError::InflateLimit { limit: ExceededLimit::Size(Bytes(40)), .. }
    ));
}

#[test]
fn nesting_bombs_are_refused() {
    for head in ["", "{\"traceEvents\": [{\"ph\": \"X\", \"args\": ", "{\"meta\": ", "[[{\"a\":"] {
        for bracket in ["[", "{\"a\":"] {
            let text = format!("{head}{}", bracket.repeat(2_000_000));
            let error = error(text.as_bytes());
            assert!(
                matches!(error, ReadError::NestingTooDeep { .. } | ReadError::NotATrace { .. }),
                "{head}{bracket}: {error}"
            );
        }
    }
}

#[test]
fn deep_arguments_are_fine_up_to_a_limit() {
    for (depth, readable) in [(100, true), (1000, true), (1030, false)] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let text = format!(
            r#"[{{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"args":{{"Input Dims":{open}{close}}}}}]"#
        );
        match read_bytes(text.as_bytes(), &ReadOptions::default()) {
            Ok((trace, diagnostics)) => {
                assert!(readable && diagnostics.is_empty(), "{depth}: {diagnostics:?}");
                assert_eq!(trace.strings.resolve(trace.signatures[1].dims).len(), 2 * depth);
            }
            Err(error) => {
                assert!(!readable, "{depth}: {error}");
                assert!(matches!(error, ReadError::NestingTooDeep { .. }), "{error}");
            }
        }
    }
}

#[test]
fn an_event_that_is_too_long_is_left_out_and_the_next_is_read() {
    let options =
        ReadOptions { event_limit: Bytes(10_000), chunk: Bytes(1000), ..ReadOptions::default() };
    for length in [9_000, 11_000, 100_000] {
        let long = "x".repeat(length);
        let text = format!(
            r#"{{"meta": "{long}", "traceEvents": [{{"ph":"M","name":"a"}},{{"ph":"M","name":"{long}","args":{{}}}},{{"ph":"M","name":"b"}}], "traceName": "n"}}"#
        );
        let (trace, diagnostics) = read_bytes(text.as_bytes(), &options).expect("a trace");
        let too_long = u64::from(length > 10_000);
        let count = |code| diagnostics.get(code).map_or(0, |d| d.count);
        assert_eq!(trace.event_count, 3 - too_long, "{length}");
        assert_eq!((count("bad-event"), count("long-value")), (too_long, too_long), "{length}");
        assert_eq!(trace.header.extra.last(), Some(&("traceName".to_owned(), "n".to_owned())));
    }
}
