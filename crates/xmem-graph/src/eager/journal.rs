//! What happens, noted as PyTorch's profiler notes it: operators with their arguments, allocations and frees.

use super::arguments::Args;
use crate::events::{CallKind, Happened, Sequence};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use std::borrow::Cow;

/// Nanoseconds between two things that happen.
const TICK: u64 = 1000;

/// Distance of addresses: no two blocks share one.
const ADDRESSES: u64 = 64;

/// Events in order of their start.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    events: Vec<Event>,
    /// Each distinct list of arguments once.
    arguments: IndexSet<Args, FxBuildHasher>,
    now: u64,
    allocated: u64,
    blocks: u64,
    closed: bool,
}

/// An event, with the fields that its kind has.
#[derive(Debug)]
enum Event {
    Call {
        kind: CallKind,
        name: Cow<'static, str>,
        /// The row of the arguments, if there are any.
        args: Option<u32>,
        sequence: Option<Sequence>,
        span: (u64, u64),
    },
    Memory {
        address: u64,
        bytes: i64,
        allocated: u64,
        time: u64,
    },
}

/// A call that has begun.
#[derive(Debug)]
pub(crate) struct Begun(usize);

impl Journal {
    fn tick(&mut self) -> u64 {
        self.now += TICK;
        self.now
    }

    /// Begins a call.
    pub(crate) fn begin(
        &mut self,
        kind: CallKind,
        name: impl Into<Cow<'static, str>>,
        args: Args,
        sequence: Option<Sequence>,
    ) -> Begun {
        let start = self.tick();
        let at = self.events.len();
        let args = (!args.is_empty()).then(|| self.row_of(args));
        self.events.push(Event::Call {
            kind,
            name: name.into(),
            args,
            sequence,
            span: (start, start),
        });
        Begun(at)
    }

    fn row_of(&mut self, args: Args) -> u32 {
        let row = match self.arguments.get_index_of(&args) {
            Some(row) => row,
            None => self.arguments.insert_full(args.clone()).0,
        };
        args.recycle();
        u32::try_from(row).expect("fewer than 2^32 lists of arguments")
    }

    /// Ends a call.
    pub(crate) fn end(&mut self, call: &Begun) {
        let end = self.tick();
        if let Some(Event::Call { span, .. }) = self.events.get_mut(call.0) {
            span.1 = end;
        }
    }

    /// Allocates; returns the address.
    pub(crate) fn allocate(&mut self, bytes: u64) -> u64 {
        self.blocks += 1;
        let address = ADDRESSES * self.blocks;
        self.allocated = self.allocated.saturating_add(bytes);
        self.memory(address, i64::try_from(bytes).unwrap_or(i64::MAX));
        address
    }

    /// Ends the recording: what is freed later is not in it.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Frees.
    pub(crate) fn free(&mut self, address: u64, bytes: u64) {
        if self.closed {
            return;
        }
        self.allocated = self.allocated.saturating_sub(bytes);
        self.memory(address, i64::try_from(bytes).map_or(i64::MIN, |b| -b));
    }

    fn memory(&mut self, address: u64, bytes: i64) {
        let time = self.tick();
        let allocated = self.allocated;
        self.events.push(Event::Memory { address, bytes, allocated, time });
    }

    /// What happened, in order of its start.
    pub(crate) fn events(&self) -> impl ExactSizeIterator<Item = Happened<'_>> {
        self.events.iter().map(|event| match event {
            Event::Call { kind, name, args, sequence, span: (start, end) } => Happened::Call {
                kind: *kind,
                name,
                arguments: args.map(|row| (row, self.arguments[row as usize].lists())),
                sequence: *sequence,
                start: *start,
                duration: end - start,
            },
            Event::Memory { address, bytes, allocated, time } => Happened::Memory {
                address: *address,
                bytes: *bytes,
                allocated: *allocated,
                time: *time,
            },
        })
    }

    /// The time at which the recording ends, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }
}
