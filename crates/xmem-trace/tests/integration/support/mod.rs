//! Helpers that the tests of this crate share.
#![allow(dead_code, reason = "not every test uses all of it")]

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
        memory: time address bytes total_allocated total_reserved device device_index thread out_of_memory;
        flows: id time thread kind;
    }
}

/// A listing of everything that a (small) trace holds.
pub(crate) fn show(trace: &Trace, diagnostics: &Diagnostics) -> String {
    let mut out = String::new();
    let s = |sym| trace.strings.resolve(sym);
    let thread = |index: xmem_types::ThreadIdx| {
        let thread = &trace.threads[index.index()];
        format!("{}/{}", s(thread.process), s(thread.thread))
    };
    let header = &trace.header;
    if *header != xmem_trace::TraceHeader::default() {
        out += &format!(
            "header {:?} {:?} {:?} {:?}\n",
            header.base_time.map(|t| t.0),
            header.schema_version,
            header.options,
            header.devices
        );
        for (key, value) in &header.extra {
            out += &format!("       {key}={value}\n");
        }
    }
    let ops = &trace.ops;
    for i in 0..ops.len() {
        let signature = trace.signatures[ops.signature[i].0 as usize];
        out += &format!(
            "{:?} {:?} {} +{} @{} seq={} fwd={} [{} {} {} {}]\n",
            ops.kind[i],
            s(ops.name[i]),
            ops.start[i].0,
            ops.duration[i].0,
            thread(ops.thread[i]),
            ops.sequence[i],
            ops.forward_thread[i],
            s(signature.dims),
            s(signature.types),
            s(signature.strides),
            s(signature.concrete),
        );
    }
    let python = &trace.python;
    for i in 0..python.len() {
        out += &format!(
            "Python {:?} {} +{} @{}\n",
            s(python.name[i]),
            python.start[i].0,
            python.duration[i].0,
            thread(python.thread[i])
        );
    }
    let memory = &trace.memory;
    for i in 0..memory.len() {
        out += &format!(
            "Memory {} {:#x} {} total={} {:?}:{} @{} oom={}\n",
            memory.time[i].0,
            memory.address[i].0,
            memory.bytes[i],
            memory.total_allocated[i],
            memory.device[i],
            memory.device_index[i],
            thread(memory.thread[i]),
            memory.out_of_memory[i],
        );
    }
    let flows = &trace.flows;
    for i in 0..flows.len() {
        out += &format!(
            "Flow {:?} {} {} @{}\n",
            flows.kind[i],
            flows.id[i],
            flows.time[i].0,
            thread(flows.thread[i])
        );
    }
    let mut other: Vec<_> = trace.other_events.iter().collect();
    other.sort();
    for (kind, count) in other {
        out += &format!("other {kind:?} {count}\n");
    }
    out += &format!("{} events\n", trace.event_count);
    for d in diagnostics.iter() {
        out += &format!("{}: {} x{} {:?}: {}\n", d.severity, d.code, d.count, d.first, d.message);
    }
    out
}
