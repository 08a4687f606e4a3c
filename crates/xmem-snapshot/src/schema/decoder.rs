//! Parts that the modules of the schema share: plain values as typed ones, symbols, streams, the
//! account of work done.

use super::fields::{Field, Fields, shown};
use super::stacks::Known;
use crate::budget::Budget;
use crate::error::SnapshotError;
use crate::frames::FrameTable;
use crate::model::{DeviceIndex, Snapshot, StreamHandle};
use crate::pickle::{Tree, Value};
use std::collections::BTreeMap;
use xmem_types::{
    Addr, Bytes, Diagnostics, Interner, Location, Nanos, Severity, StreamId, Sym, printable,
};

/// A writer mentions each entry and block once. A file in which they are mentioned so often that
/// the snapshot would be this many times larger than the file's own values is not from one.
const REPETITION: u64 = 4;

/// The state of one decoding.
#[derive(Debug)]
pub(super) struct Decoder<'t, 'a, 'b> {
    pub(super) tree: &'t Tree<'a>,
    pub(super) budget: &'b mut Budget,
    pub(super) diagnostics: Diagnostics,
    pub(super) frames: FrameTable,
    pub(super) known: Known,
    strings: Interner,
    symbols: Vec<Option<Sym>>,
    streams: Vec<StreamHandle>,
    stream_ids: BTreeMap<StreamHandle, StreamId>,
    work_left: u64,
}

impl<'t, 'a, 'b> Decoder<'t, 'a, 'b> {
    pub(super) fn new(tree: &'t Tree<'a>, budget: &'b mut Budget) -> Result<Self, SnapshotError> {
        budget.take::<u32>(tree.container_count(), 0)?;
        budget.take::<Option<Sym>>(tree.text_count(), 0)?;
        Ok(Self {
            tree,
            budget,
            diagnostics: Diagnostics::default(),
            frames: FrameTable::default(),
            known: Known::new(tree.container_count()),
            strings: Interner::default(),
            symbols: vec![None; tree.text_count()],
            streams: vec![StreamHandle(0)],
            stream_ids: BTreeMap::from([(StreamHandle(0), StreamId(0))]),
            work_left: tree.size() as u64 * REPETITION,
        })
    }

    pub(super) fn finish(self, mut snapshot: Snapshot) -> (Snapshot, Diagnostics) {
        snapshot.frames = self.frames;
        snapshot.strings = self.strings;
        snapshot.streams = self.streams;
        (snapshot, self.diagnostics)
    }

    /// The keys of a dict that is mentioned in the container at byte `at`.
    pub(super) fn fields(
        &mut self,
        value: Value,
        at: usize,
    ) -> Result<Fields<'t, 'a>, SnapshotError> {
        let Value::Dict(id) = value else { return Err(misplaced(value, "a dict", at)) };
        self.work(2 * self.tree.items(id).len(), self.tree.at(id))?;
        Ok(Fields::new(self.tree, id))
    }

    /// The elements of a list or tuple that is mentioned in the container at byte `at`, and where
    /// it begins.
    pub(super) fn list(
        &mut self,
        value: Value,
        at: usize,
    ) -> Result<(&'t [Value], usize), SnapshotError> {
        let (Value::List(id) | Value::Tuple(id)) = value else {
            return Err(misplaced(value, "a list", at));
        };
        let (items, at) = (self.tree.items(id), self.tree.at(id));
        self.work(items.len(), at)?;
        Ok((items, at))
    }

    /// The elements of the list or tuple in `field`.
    pub(super) fn elements(&mut self, field: Field<'t>) -> Result<&'t [Value], SnapshotError> {
        match field.value {
            Value::List(_) | Value::Tuple(_) => Ok(self.list(field.value, field.at)?.0),
            _ => Err(field.misfit("a list")),
        }
    }

    pub(super) fn integer(&self, field: Field<'t>) -> Result<i64, SnapshotError> {
        self.tree.integer(field.value).ok_or_else(|| field.misfit("an integer"))
    }

    fn natural(&self, field: Field<'t>) -> Result<u64, SnapshotError> {
        match self.tree.natural(field.value) {
            Some(Ok(number)) => Ok(number),
            Some(Err(number)) => {
                Err(field.error(format!("is {number}, expected no negative number")))
            }
            None => Err(field.misfit("an integer")),
        }
    }

    pub(super) fn bytes(&self, field: Field<'t>) -> Result<Bytes, SnapshotError> {
        self.natural(field).map(Bytes)
    }

    pub(super) fn addr(&self, field: Field<'t>) -> Result<Addr, SnapshotError> {
        self.natural(field).map(Addr)
    }

    pub(super) fn index(&self, field: Field<'t>) -> Result<u32, SnapshotError> {
        let number = self.natural(field)?;
        u32::try_from(number)
            .map_err(|_| field.error(format!("is {number}, expected less than 2^32")))
    }

    pub(super) fn device(&self, field: Field<'t>) -> Result<DeviceIndex, SnapshotError> {
        self.index(field).map(DeviceIndex)
    }

    /// A time in microseconds since the Unix epoch.
    pub(super) fn time(&self, field: Field<'t>) -> Result<Nanos, SnapshotError> {
        let micros = self.integer(field)?;
        let nanos = micros.checked_mul(1000);
        nanos.map(Nanos).ok_or_else(|| field.error(format!("{micros} µs is not a valid time")))
    }

    pub(super) fn flag(&self, field: Field<'t>) -> Result<bool, SnapshotError> {
        match field.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(field.misfit("a bool")),
        }
    }

    pub(super) fn text(&self, field: Field<'t>) -> Result<&'t [u8], SnapshotError> {
        match field.value {
            Value::Text(id) => Ok(self.tree.text(id)),
            _ => Err(field.misfit("text")),
        }
    }

    /// Text as a symbol, made printable.
    pub(super) fn symbol(&mut self, field: Field<'t>) -> Result<Sym, SnapshotError> {
        let Value::Text(id) = field.value else { return Err(field.misfit("text")) };
        if let Some(known) = self.symbols[id.index()] {
            return Ok(known);
        }
        let bytes = self.tree.text(id);
        self.budget.take::<u8>(bytes.len(), field.at)?;
        let sym = match str::from_utf8(bytes) {
            Ok(text) => self.strings.intern(&printable(text)),
            Err(_) => {
                self.diagnostics.report(
                    "text-not-unicode",
                    Severity::Note,
                    Some(Location::ByteOffset(field.at as u64)),
                    || format!("`{}` is shown with replacement characters", shown(bytes)),
                );
                self.strings.intern(&printable(&String::from_utf8_lossy(bytes)))
            }
        };
        self.symbols[id.index()] = Some(sym);
        Ok(sym)
    }

    /// A stream handle as its number in order of appearance; handles are written as signed
    /// integers.
    pub(super) fn stream(&mut self, field: Field<'t>) -> Result<StreamId, SnapshotError> {
        let handle = StreamHandle(self.integer(field)?.cast_unsigned());
        if let Some(&known) = self.stream_ids.get(&handle) {
            return Ok(known);
        }
        self.budget.take::<[StreamHandle; 4]>(1, field.at)?;
        let id = StreamId::new(self.streams.len());
        self.streams.push(handle);
        self.stream_ids.insert(handle, id);
        Ok(id)
    }

    /// Counts a key that this version does not know.
    pub(super) fn unknown(&mut self, of: &str, field: Field<'t>) {
        self.diagnostics.report(
            "unknown-key",
            Severity::Note,
            Some(Location::ByteOffset(field.at as u64)),
            || format!("key `{}` of {of} is unknown; ignored", shown(field.key)),
        );
    }

    /// Counts something odd that is said in `place`.
    pub(super) fn odd(&mut self, code: &'static str, at: usize, message: impl FnOnce() -> String) {
        let place = Some(Location::ByteOffset(at as u64));
        self.diagnostics.report(code, Severity::Warning, place, message);
    }

    fn work(&mut self, values: usize, at: usize) -> Result<(), SnapshotError> {
        match self.work_left.checked_sub(values as u64) {
            Some(left) => {
                self.work_left = left;
                Ok(())
            }
            None => Err(SnapshotError::Layout {
                path: String::new(),
                at,
                problem: "the same objects are referenced too often for a memory snapshot"
                    .to_owned(),
            }),
        }
    }
}

fn misplaced(value: Value, expected: &str, at: usize) -> SnapshotError {
    SnapshotError::Layout {
        path: String::new(),
        at,
        problem: format!("is {}, expected {expected}", value.kind()),
    }
}
