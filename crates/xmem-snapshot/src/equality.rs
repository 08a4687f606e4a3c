//! Equality of the content of two snapshots, though their tables number texts, stacks and streams
//! differently.

use crate::frames::{Frame, FrameId, StackId};
use crate::model::{
    Action, Annotation, Segment, Snapshot, SnapshotBlock, StreamHandle, TraceEntry,
};
use crate::settings::{AllocatorSettings, Setting};
use std::collections::BTreeMap;
use xmem_types::{StreamId, Sym};

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        let mut translation = Translation::new(self, other);
        self.allocator_settings == other.allocator_settings
            && all(&self.segments, &other.segments, |a, b| translation.segment(a, b))
            && all(&self.device_traces, &other.device_traces, |a, b| {
                all(a, b, |a, b| translation.entry(a) == Some(*b))
            })
            && all(&self.annotations, &other.annotations, |a, b| {
                translation.annotation(a) == Some(*b)
            })
    }
}

fn all<T>(a: &[T], b: &[T], mut same: impl FnMut(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// From the ids of one snapshot to those of another; `None` where the other has nothing like it.
struct Translation<'s> {
    from: &'s Snapshot,
    to: &'s Snapshot,
    texts: Vec<Option<Sym>>,
    /// `None` where it was not looked for yet.
    stacks: Vec<Option<Option<StackId>>>,
    streams: BTreeMap<StreamHandle, StreamId>,
}

impl<'s> Translation<'s> {
    fn new(from: &'s Snapshot, to: &'s Snapshot) -> Self {
        let streams = to.streams.iter().enumerate();
        Self {
            from,
            to,
            texts: from.strings.iter().map(|(_, text)| to.strings.get(text)).collect(),
            stacks: vec![None; from.frames.stack_count()],
            streams: streams.map(|(i, &handle)| (handle, StreamId::new(i))).collect(),
        }
    }

    fn segment(&mut self, from: &Segment, to: &Segment) -> bool {
        let same_blocks = all(&from.blocks, &to.blocks, |from, to| self.block(from) == Some(*to));
        let (Some(stream), Some(stack)) = (self.stream(from.stream), self.stack(from.stack)) else {
            return false;
        };
        // The blocks have been compared, and are left out of both.
        same_blocks
            && Segment { stream, stack, blocks: Vec::new(), ..*from }
                == Segment { blocks: Vec::new(), ..*to }
    }

    fn block(&mut self, block: &SnapshotBlock) -> Option<SnapshotBlock> {
        Some(SnapshotBlock { stack: self.stack(block.stack)?, ..*block })
    }

    fn entry(&mut self, entry: &TraceEntry) -> Option<TraceEntry> {
        Some(TraceEntry {
            action: match entry.action {
                Action::Other(name) => Action::Other(self.text(name)?),
                known => known,
            },
            stream: self.stream(entry.stream)?,
            stack: self.stack(entry.stack)?,
            compile_context: self.text(entry.compile_context)?,
            user_metadata: self.text(entry.user_metadata)?,
            ..*entry
        })
    }

    fn annotation(&self, annotation: &Annotation) -> Option<Annotation> {
        Some(Annotation { name: self.text(annotation.name)?, ..*annotation })
    }

    fn stack(&mut self, id: StackId) -> Option<StackId> {
        if let Some(known) = self.stacks[id.index()] {
            return known;
        }
        let frames = self.from.frames.stack(id).iter().map(|&frame| self.frame(frame));
        let stack =
            frames.collect::<Option<Vec<_>>>().and_then(|frames| self.to.frames.stack_id(&frames));
        self.stacks[id.index()] = Some(stack);
        stack
    }

    fn frame(&self, id: FrameId) -> Option<FrameId> {
        let Frame { name, filename, line } = self.from.frames.frame(id);
        let frame = Frame { name: self.text(name)?, filename: self.text(filename)?, line };
        self.to.frames.frame_id(frame)
    }

    fn text(&self, text: Sym) -> Option<Sym> {
        self.texts[text.index()]
    }

    fn stream(&self, id: StreamId) -> Option<StreamId> {
        self.streams.get(&self.from.streams[id.index()]).copied()
    }
}

impl PartialEq for AllocatorSettings {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            text,
            max_split_size,
            garbage_collection_threshold,
            expandable_segments,
            roundup_power2_divisions,
            other: others,
        } = self;
        *text == other.text
            && *max_split_size == other.max_split_size
            && same(*garbage_collection_threshold, other.garbage_collection_threshold)
            && *expandable_segments == other.expandable_segments
            && *roundup_power2_divisions == other.roundup_power2_divisions
            && *others == other.other
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => same(*a, *b),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::None, Self::None) => true,
            _ => false,
        }
    }
}

/// Unlike for `==`, not-a-number is itself.
fn same(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq()
}
