//! The columns of chunks put together in file order.

use crate::builder::Builder;
use crate::chunk_strings::LocalStrings;
use crate::columns::{Signature, SignatureId, Thread};
use xmem_types::{Interner, Sym, ThreadIdx, printable};

impl Builder<Interner> {
    /// Appends the rows of a chunk. Its strings get their symbols in the order in which the chunk
    /// saw them first, so that the whole is the same however the text was cut. From here on all text is printable:
    /// in arguments, which are JSON, the escapes mean the characters that they replace.
    pub(crate) fn append(&mut self, part: &Builder<LocalStrings>) {
        let strings = part.strings.iter();
        let syms: Vec<Sym> = strings.map(|text| self.strings.intern(&printable(text))).collect();
        let sym = |local: Sym| syms[local.index()];
        let threads: Vec<ThreadIdx> = part
            .threads
            .iter()
            .map(|t| self.thread_index(Thread { process: sym(t.process), thread: sym(t.thread) }))
            .collect();
        let signatures: Vec<SignatureId> = part
            .signatures
            .iter()
            .map(|s| {
                self.signature_id(Signature {
                    dims: sym(s.dims),
                    types: sym(s.types),
                    strides: sym(s.strides),
                    concrete: sym(s.concrete),
                })
            })
            .collect();
        let thread = |local: &ThreadIdx| threads[local.index()];

        self.ops.start.extend_from_slice(&part.ops.start);
        self.ops.duration.extend_from_slice(&part.ops.duration);
        self.ops.name.extend(part.ops.name.iter().map(|&name| sym(name)));
        self.ops.thread.extend(part.ops.thread.iter().map(thread));
        self.ops.kind.extend_from_slice(&part.ops.kind);
        self.ops.sequence.extend_from_slice(&part.ops.sequence);
        self.ops.forward_thread.extend_from_slice(&part.ops.forward_thread);
        self.ops.signature.extend(part.ops.signature.iter().map(|s| signatures[s.0 as usize]));

        self.python.start.extend_from_slice(&part.python.start);
        self.python.duration.extend_from_slice(&part.python.duration);
        self.python.name.extend(part.python.name.iter().map(|&name| sym(name)));
        self.python.thread.extend(part.python.thread.iter().map(thread));

        self.memory.time.extend_from_slice(&part.memory.time);
        self.memory.address.extend_from_slice(&part.memory.address);
        self.memory.bytes.extend_from_slice(&part.memory.bytes);
        self.memory.total_allocated.extend_from_slice(&part.memory.total_allocated);
        self.memory.total_reserved.extend_from_slice(&part.memory.total_reserved);
        self.memory.device.extend_from_slice(&part.memory.device);
        self.memory.device_index.extend_from_slice(&part.memory.device_index);
        self.memory.thread.extend(part.memory.thread.iter().map(thread));
        self.memory.out_of_memory.extend_from_slice(&part.memory.out_of_memory);

        self.flows.id.extend_from_slice(&part.flows.id);
        self.flows.time.extend_from_slice(&part.flows.time);
        self.flows.thread.extend(part.flows.thread.iter().map(thread));
        self.flows.kind.extend_from_slice(&part.flows.kind);

        for (kind, count) in &part.other_events {
            self.count_other(kind, *count);
        }
        self.event_count += part.event_count;
        self.evidence.append(&part.evidence);
    }
}

impl Builder<LocalStrings> {
    /// Empties the columns, keeping their memory.
    pub(crate) fn clear(&mut self) {
        self.strings.clear();
        self.reset();
    }
}
