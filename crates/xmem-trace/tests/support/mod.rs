//! What the tests of this crate share.

use std::fmt::Debug;
use std::num::NonZeroUsize;
use xmem_trace::{ReadOptions, Trace, read_bytes};
use xmem_types::{Bytes, Diagnostics};

/// Reads `text`, which must be a trace, in chunks of `chunk` bytes on `threads` threads.
pub(crate) fn read_with(text: &[u8], chunk: u64, threads: usize) -> (Trace, Diagnostics) {
    let options = ReadOptions {
        chunk: Bytes(chunk),
        threads: NonZeroUsize::new(threads),
        ..ReadOptions::default()
    };
    read_bytes(text, &options).expect("a valid trace")
}

/// Fails where two traces differ, naming the column.
pub(crate) fn assert_same(found: &Trace, expected: &Trace, what: &str) {
    fn same<T: PartialEq + Debug>(found: &[T], expected: &[T], column: &str, what: &str) {
        if let Some(row) = found.iter().zip(expected).position(|(a, b)| a != b) {
            panic!("{what}: {column}[{row}] is {:?}, expected {:?}", found[row], expected[row]);
        }
        assert_eq!(found.len(), expected.len(), "{what}: rows of {column}");
    }
    let strings =
        |trace: &Trace| trace.strings.iter().map(|(_, s)| s.to_owned()).collect::<Vec<_>>();
    same(&strings(found), &strings(expected), "strings", what);
    assert_eq!(found.header, expected.header, "{what}");
    assert_eq!(found.event_count, expected.event_count, "{what}");
    assert_eq!(found.other_events, expected.other_events, "{what}");
    same(&found.threads, &expected.threads, "threads", what);
    same(&found.signatures, &expected.signatures, "signatures", what);
    macro_rules! columns {
        ($($table:ident: $($column:ident)+;)+) => {
            $($(same(
                &found.$table.$column,
                &expected.$table.$column,
                concat!(stringify!($table), ".", stringify!($column)),
                what,
            );)+)+
        };
    }
    columns! {
        ops: start duration name thread kind sequence forward_thread signature;
        python: start duration name thread;
        memory: time address bytes total_allocated device device_index thread out_of_memory;
        flows: id time thread kind;
    }
}
