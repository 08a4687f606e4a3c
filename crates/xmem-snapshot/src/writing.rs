//! From a [`Snapshot`] to the pickle that PyTorch would have written, with the keys of PyTorch 2.5
//! and newer (`THCPModule_memorySnapshot` in torch/csrc/cuda/Module.cpp).
//!
//! Keys, texts, frames and stacks are written once and mentioned from then on.

mod words;

use crate::frames::{FrameId, StackId};
use crate::model::{
    Action, Annotation, AnnotationStage, BlockState, DeviceIndex, Segment, SegmentKind, Snapshot,
    SnapshotBlock, TraceEntry,
};
use crate::pickle::{MemoIndex, Pickler};
use crate::settings::{AllocatorSettings, Setting};
use std::io::{self, Write};
use words::Word;
use xmem_types::{Bytes, MIB, Nanos, StreamId, Sym};

/// The number of elements that a reader has to gather before they move to their list, as with
/// CPython's pickler. The memory_viz page passes them as arguments of one call.
const BATCH: usize = 1000;

/// Writes `snapshot` to `out`.
pub(crate) fn write(snapshot: &Snapshot, out: impl Write) -> io::Result<()> {
    let mut writer = Writer {
        snapshot,
        pickle: Pickler::new(out, Word::COUNT as u32)?,
        words: [false; Word::COUNT],
        texts: vec![None; snapshot.strings.len()],
        frames: vec![None; snapshot.frames.frame_count()],
        stacks: vec![None; snapshot.frames.stack_count()],
    };
    writer.document()?;
    writer.pickle.finish()
}

struct Writer<'s, W> {
    snapshot: &'s Snapshot,
    pickle: Pickler<W>,
    /// The words that were written before.
    words: [bool; Word::COUNT],
    texts: Vec<Option<MemoIndex>>,
    frames: Vec<Option<MemoIndex>>,
    stacks: Vec<Option<MemoIndex>>,
}

impl<W: Write> Writer<'_, W> {
    fn document(&mut self) -> io::Result<()> {
        let snapshot = self.snapshot;
        self.pickle.open_dict()?;
        self.word(Word::Segments)?;
        self.list(&snapshot.segments, Self::segment)?;
        self.word(Word::DeviceTraces)?;
        self.list(&snapshot.device_traces, |writer, trace| writer.list(trace, Self::entry))?;
        if let Some(settings) = &snapshot.allocator_settings {
            self.word(Word::AllocatorSettings)?;
            self.settings(settings)?;
        }
        self.word(Word::ExternalAnnotations)?;
        self.list(&snapshot.annotations, Self::annotation)?;
        self.pickle.close_dict()
    }

    fn segment(&mut self, segment: &Segment) -> io::Result<()> {
        self.pickle.open_dict()?;
        self.number(Word::Device, segment.device.0)?;
        self.number(Word::Address, segment.address.0)?;
        self.bytes(Word::TotalSize, segment.total)?;
        self.bytes(Word::AllocatedSize, segment.allocated)?;
        self.bytes(Word::ActiveSize, segment.active)?;
        if let Some(requested) = segment.requested {
            self.bytes(Word::RequestedSize, requested)?;
        }
        self.stream(segment.stream)?;
        self.word(Word::SegmentType)?;
        self.word(match segment.kind {
            SegmentKind::Small => Word::Small,
            SegmentKind::Large => Word::Large,
        })?;
        self.word(Word::SegmentPoolId)?;
        self.pickle.integer(segment.pool.0.cast_signed())?;
        self.pickle.integer(segment.pool.1.cast_signed())?;
        self.pickle.pair()?;
        self.word(Word::IsExpandable)?;
        self.pickle.flag(segment.expandable)?;
        self.stack(segment.stack)?;
        self.word(Word::Blocks)?;
        self.list(&segment.blocks, Self::block)?;
        self.pickle.close_dict()
    }

    fn block(&mut self, block: &SnapshotBlock) -> io::Result<()> {
        self.pickle.open_dict()?;
        self.number(Word::Address, block.address.0)?;
        self.bytes(Word::Size, block.size)?;
        if let Some(requested) = block.requested {
            self.bytes(Word::RequestedSize, requested)?;
        }
        self.word(Word::State)?;
        self.word(match block.state {
            BlockState::ActiveAllocated => Word::ActiveAllocated,
            BlockState::ActivePendingFree => Word::ActivePendingFree,
            BlockState::Inactive => Word::Inactive,
        })?;
        self.stack(block.stack)?;
        self.pickle.close_dict()
    }

    fn entry(&mut self, entry: &TraceEntry) -> io::Result<()> {
        self.pickle.open_dict()?;
        self.word(Word::Action)?;
        self.action(entry.action)?;
        match entry.action {
            Action::OutOfMemory { device_free } => self.bytes(Word::DeviceFree, device_free)?,
            _ => self.number(Word::Addr, entry.addr.0)?,
        }
        self.bytes(Word::Size, entry.size)?;
        self.stream(entry.stream)?;
        self.time(entry.time)?;
        for (key, text) in [
            (Word::CompileContext, entry.compile_context),
            (Word::UserMetadata, entry.user_metadata),
        ] {
            if text != Sym::EMPTY {
                self.word(key)?;
                self.text(text)?;
            }
        }
        self.stack(entry.stack)?;
        self.pickle.close_dict()
    }

    fn action(&mut self, action: Action) -> io::Result<()> {
        self.word(match action {
            Action::SegmentAlloc => Word::SegmentAlloc,
            Action::SegmentFree => Word::SegmentFree,
            Action::SegmentMap => Word::SegmentMap,
            Action::SegmentUnmap => Word::SegmentUnmap,
            Action::Alloc => Word::Alloc,
            Action::FreeRequested => Word::FreeRequested,
            Action::FreeCompleted => Word::FreeCompleted,
            Action::OutOfMemory { .. } => Word::Oom,
            Action::Snapshot => Word::Snapshot,
            Action::Annotate => Word::Annotate,
            Action::Other(name) => return self.text(name),
        })
    }

    fn annotation(&mut self, annotation: &Annotation) -> io::Result<()> {
        self.pickle.open_dict()?;
        self.word(Word::Stage)?;
        self.word(match annotation.stage {
            AnnotationStage::Start => Word::Start,
            AnnotationStage::End => Word::End,
        })?;
        self.word(Word::Name)?;
        self.text(annotation.name)?;
        let DeviceIndex(device) = annotation.device;
        self.number(Word::Device, device)?;
        self.time(annotation.time)?;
        self.pickle.close_dict()
    }

    fn settings(&mut self, settings: &AllocatorSettings) -> io::Result<()> {
        self.pickle.open_dict()?;
        if let Some(text) = &settings.text {
            self.word(Word::AllocConf)?;
            self.pickle.text(text)?;
        }
        self.word(Word::MaxSplitSize)?;
        match settings.max_split_size {
            Some(size) => self.pickle.integer(size.get())?,
            None => self.pickle.integer(-1)?,
        }
        self.word(Word::GarbageCollectionThreshold)?;
        self.pickle.float(settings.garbage_collection_threshold)?;
        self.word(Word::ExpandableSegments)?;
        self.pickle.flag(settings.expandable_segments)?;
        self.word(Word::RoundupPower2Divisions)?;
        self.pickle.open_dict()?;
        for (from, &divisions) in &settings.roundup_power2_divisions {
            self.pickle.text(&(from.get() / MIB).to_string())?;
            self.pickle.integer(divisions)?;
        }
        self.pickle.close_dict()?;
        for (name, value) in &settings.other {
            self.pickle.text(name)?;
            match value {
                Setting::None => self.pickle.none(),
                Setting::Bool(flag) => self.pickle.flag(*flag),
                Setting::Int(number) => self.pickle.integer(*number),
                Setting::Float(number) => self.pickle.float(*number),
                Setting::Text(text) => self.pickle.text(text),
            }?;
        }
        self.pickle.close_dict()
    }

    /// The key and value of a call stack, innermost frame first.
    fn stack(&mut self, id: StackId) -> io::Result<()> {
        self.word(Word::Frames)?;
        if let Some(known) = self.stacks[id.index()] {
            return self.pickle.kept(known);
        }
        let snapshot = self.snapshot;
        self.list(snapshot.frames.stack(id), |writer, &frame| writer.frame(frame))?;
        // A mention of the empty one would be longer than itself.
        if id != StackId::EMPTY {
            self.stacks[id.index()] = Some(self.pickle.keep()?);
        }
        Ok(())
    }

    fn frame(&mut self, id: FrameId) -> io::Result<()> {
        if let Some(known) = self.frames[id.index()] {
            return self.pickle.kept(known);
        }
        let frame = self.snapshot.frames.frame(id);
        self.pickle.open_dict()?;
        self.word(Word::Filename)?;
        self.text(frame.filename)?;
        self.number(Word::Line, frame.line)?;
        self.word(Word::Name)?;
        self.text(frame.name)?;
        self.pickle.close_dict()?;
        self.frames[id.index()] = Some(self.pickle.keep()?);
        Ok(())
    }

    /// A list of what `element` writes for each of `items`.
    fn list<T>(
        &mut self,
        items: &[T],
        mut element: impl FnMut(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.pickle.empty_list()?;
        for batch in items.chunks(BATCH) {
            self.pickle.open_batch()?;
            for item in batch {
                element(self, item)?;
            }
            self.pickle.close_batch()?;
        }
        Ok(())
    }

    fn bytes(&mut self, key: Word, size: Bytes) -> io::Result<()> {
        self.number(key, size.get())
    }

    fn number(&mut self, key: Word, number: impl Into<i128>) -> io::Result<()> {
        self.word(key)?;
        self.pickle.integer(number)
    }

    /// Handles are written as signed integers.
    fn stream(&mut self, id: StreamId) -> io::Result<()> {
        let handle = self.snapshot.streams[id.index()];
        self.number(Word::Stream, handle.0.cast_signed())
    }

    fn time(&mut self, time: Option<Nanos>) -> io::Result<()> {
        match time {
            Some(time) => self.number(Word::TimeUs, time.get().div_euclid(1000)),
            None => Ok(()),
        }
    }

    fn text(&mut self, text: Sym) -> io::Result<()> {
        if let Some(known) = self.texts[text.index()] {
            return self.pickle.kept(known);
        }
        self.pickle.text(self.snapshot.strings.resolve(text))?;
        self.texts[text.index()] = Some(self.pickle.keep()?);
        Ok(())
    }

    fn word(&mut self, word: Word) -> io::Result<()> {
        if std::mem::replace(&mut self.words[word as usize], true) {
            return self.pickle.kept(word.memo());
        }
        self.pickle.text(word.text())?;
        self.pickle.keep_as(word.memo())
    }
}
