//! What a graph does, as the columns of a trace: the same that reading the text of its trace would give.

use std::io::Write;
use xmem::trace::{BuiltCall, BuiltKind, Trace, TraceBuilder};
use xmem::types::{Diagnostics, Nanos, SealingWriter};
use xmem_graph::{ActedRun, CallKind, Happened, Sequence};

pub(crate) fn of(run: &ActedRun) -> (Trace, Diagnostics) {
    let mut builder = TraceBuilder::new("1", "1");
    for (key, value) in run.members() {
        builder.member(key, value);
    }
    for event in run.events() {
        match event {
            Happened::Call { kind, name, arguments, sequence, start, duration } => {
                builder.call(&BuiltCall {
                    kind: match kind {
                        CallKind::Operator => BuiltKind::Operator,
                        CallKind::Annotation => BuiltKind::Annotation,
                        CallKind::Python => BuiltKind::Python,
                    },
                    name,
                    arguments: arguments.map(|(number, lists)| {
                        (number, [lists.dims, lists.types, lists.strides, lists.concrete])
                    }),
                    sequence: sequence.map(Sequence::numbers),
                    start: nanos(start),
                    duration: nanos(duration),
                });
            }
            Happened::Memory { address, bytes, allocated, time } => {
                builder.memory(nanos(time), address, bytes, allocated);
            }
        }
    }
    // The profiler's span of the whole.
    builder.other("Trace");
    builder.finish()
}

/// The text of the same trace, with a seal.
pub(crate) fn text(run: &ActedRun) -> Vec<u8> {
    let mut writer = SealingWriter::new(Vec::new());
    let text = run.trace_text();
    let written = writer.write_all(text.as_bytes()).and_then(|()| writer.finish(true));
    // Memory takes all that is written to it.
    written.unwrap_or_default()
}

fn nanos(time: u64) -> Nanos {
    Nanos(time.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobSettings, Purpose, Source};
    use xmem::ReadOptions;
    use xmem::trace::read_bytes;
    use xmem::types::SEAL_KEY;

    /// Graphs with loops of Python, autocast, checkpointing, and a model of ONNX.
    const GRAPHS: [&[u8]; 4] = [
        include_bytes!("../../../traces/graphs/networks_resnet32.pt2"),
        include_bytes!("../../../traces/graphs/gpt2_ampbf16_adamw.pt2"),
        include_bytes!("../../../traces/graphs/qwen3_adamw_ckpt.pt2"),
        include_bytes!("../../../traces/graphs/onnx/mlp.torchscript.onnx"),
    ];

    /// A trace without the order that hash maps happen to have.
    fn columns(trace: &Trace) -> String {
        let Trace { header, threads, signatures, ops, python, memory, .. } = trace;
        let strings: Vec<&str> = trace.strings.iter().map(|(_, text)| text).collect();
        let events = (&trace.other_events, trace.event_count, trace.evidence);
        let tables = (ops, python, memory, &trace.flows);
        format!("{header:?}\n{strings:?}\n{threads:?}\n{signatures:?}\n{tables:?}\n{events:?}")
    }

    #[test]
    fn columns_are_those_of_the_text() {
        for bytes in GRAPHS {
            let source = Source::read(bytes.to_vec()).expect("a graph");
            let purpose = matches!(source, Source::Model(_)).then_some(Purpose::Inference);
            let settings = JobSettings { purpose, ..JobSettings::default() };
            let workload = settings.workload(&source).expect("a job");
            let run = source.act(&workload).expect("it runs");
            let (built, notes) = of(&run);
            let text = text(&run);
            let (mut read, read_notes) =
                read_bytes(&text, &ReadOptions::default()).expect("a trace");
            read.header.take_extra(SEAL_KEY).expect("a seal");
            assert!(columns(&built) == columns(&read), "{} events", built.event_count);
            assert_eq!(format!("{notes:?}"), format!("{read_notes:?}"));
        }
    }
}
