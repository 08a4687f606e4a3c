//! What the fuzz targets check. Ordinary tests of `xmem-trace` include this file too and run it on
//! a few inputs, so that it keeps up with the crate.

use std::num::NonZeroUsize;
use xmem_trace::{EventParser, ReadError, ReadOptions, Trace, baseline, read_bytes, reference};
use xmem_types::{Bytes, Diagnostics};

/// Reading ends, without a panic, whatever the bytes are.
pub(crate) fn ingest(data: &[u8]) {
    let options = ReadOptions {
        inflate_limit: Bytes::mib(8),
        threads: NonZeroUsize::new(1),
        ..ReadOptions::default()
    };
    if let Ok((trace, diagnostics)) = read_bytes(data, &options) {
        std::hint::black_box(listing(&trace, &diagnostics));
    }
}

/// Where the text is cut changes nothing.
pub(crate) fn splitter(data: &[u8]) {
    let read = |chunk: u64| {
        let options = ReadOptions {
            inflate_limit: Bytes::mib(8),
            chunk: Bytes(chunk),
            threads: NonZeroUsize::new(1),
            ..ReadOptions::default()
        };
        assert_eq!(
            baseline::split(data, &options).is_err(),
            read_bytes(data, &options).is_err() && !no_events(data, &options)
        );
        match read_bytes(data, &options) {
            Ok((trace, diagnostics)) => Ok(listing(&trace, &diagnostics)),
            Err(error) => Err(error.to_string()),
        }
    };
    let whole = read(1 << 14);
    for chunk in [64, 100, 1000] {
        assert_eq!(read(chunk), whole, "in chunks of {chunk} bytes");
    }
}

/// Both parsers of events come to the same, also where an event is read the second time.
pub(crate) fn parsers(data: &[u8]) {
    let read = |data: &[u8], parser: EventParser| {
        let options = ReadOptions {
            inflate_limit: Bytes::mib(8),
            threads: NonZeroUsize::new(1),
            parser,
            ..ReadOptions::default()
        };
        match read_bytes(data, &options) {
            Ok((trace, diagnostics)) => Ok(listing(&trace, &diagnostics)),
            Err(error) => Err(error.to_string()),
        }
    };
    let twice = [&b"["[..], data, b",", data, b"]"].concat();
    for data in [data, &twice] {
        assert_eq!(read(data, EventParser::Pull), read(data, EventParser::Tape));
    }
}

/// A list without events is refused only after it is cut.
fn no_events(data: &[u8], options: &ReadOptions) -> bool {
    matches!(
        read_bytes(data, options),
        Err(ReadError::NotATrace { reason, .. }) if reason == "a list without events"
    )
}

/// What the plain reader accepts, the chunked reader reads the same.
pub(crate) fn differential(data: &[u8]) {
    let Ok((expected, expected_diagnostics)) = reference::read(data) else { return };
    let options =
        ReadOptions { chunk: Bytes(256), threads: NonZeroUsize::new(1), ..ReadOptions::default() };
    match read_bytes(data, &options) {
        Ok((trace, diagnostics)) => {
            assert_eq!(tables(&trace), tables(&expected));
            let bad = |d: &Diagnostics| d.get("bad-event").map_or(0, |d| d.count);
            assert_eq!(bad(&diagnostics), bad(&expected_diagnostics));
        }
        Err(ReadError::NestingTooDeep { .. }) => {}
        Err(error) => panic!("the plain reader accepts it, but: {error}"),
    }
}

fn listing(trace: &Trace, diagnostics: &Diagnostics) -> String {
    format!("{}\n{diagnostics:?}", tables(trace))
}

fn tables(trace: &Trace) -> String {
    let strings: Vec<_> = trace.strings.iter().collect();
    let mut other: Vec<_> = trace.other_events.iter().collect();
    other.sort();
    format!(
        "{:?}\n{strings:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{other:?}\n{}",
        trace.header,
        trace.threads,
        trace.signatures,
        trace.ops,
        trace.python,
        trace.memory,
        trace.flows,
        trace.event_count
    )
}
