//! Call stacks: each distinct frame and each distinct stack once.

use std::collections::BTreeMap;
use std::sync::Arc;
use xmem_types::Sym;

/// One frame of a call stack. Texts are symbols of [`Snapshot::strings`](crate::Snapshot::strings).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Function name.
    pub name: Sym,
    /// Source file, as the recording process knew it; `??` for C++ frames without debug data.
    pub filename: Sym,
    /// Line in it, from 1; 0 where it is not known.
    pub line: u32,
}

/// A frame of the [`FrameTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub(crate) u32);

impl FrameId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A call stack of the [`FrameTable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub(crate) u32);

impl StackId {
    /// No stack was recorded: stack 0 of every table.
    pub const EMPTY: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Frames and stacks, each once.
#[derive(Clone, Debug)]
pub struct FrameTable {
    frames: Vec<Frame>,
    stacks: Vec<Arc<[FrameId]>>,
    frame_ids: BTreeMap<Frame, FrameId>,
    stack_ids: BTreeMap<Arc<[FrameId]>, StackId>,
}

impl Default for FrameTable {
    fn default() -> Self {
        let mut table = Self {
            frames: Vec::new(),
            stacks: Vec::new(),
            frame_ids: BTreeMap::new(),
            stack_ids: BTreeMap::new(),
        };
        table.intern_stack(&[]);
        table
    }
}

impl FrameTable {
    /// The frame behind `id`.
    ///
    /// # Panics
    /// If `id` comes from another table.
    #[must_use]
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames[id.index()]
    }

    /// The frames of a stack, innermost first.
    ///
    /// # Panics
    /// If `id` comes from another table.
    #[must_use]
    pub fn stack(&self, id: StackId) -> &[FrameId] {
        &self.stacks[id.index()]
    }

    /// The id of `frame`, if it is in the table.
    #[must_use]
    pub fn frame_id(&self, frame: Frame) -> Option<FrameId> {
        self.frame_ids.get(&frame).copied()
    }

    /// The id of the stack of these frames, if it is in the table.
    #[must_use]
    pub fn stack_id(&self, frames: &[FrameId]) -> Option<StackId> {
        self.stack_ids.get(frames).copied()
    }

    /// The number of distinct frames.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The number of distinct stacks, the empty one included.
    #[must_use]
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// The id of `frame`, made if it is new.
    ///
    /// # Panics
    /// If there are 2^32 frames.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        *self.frame_ids.entry(frame).or_insert_with(|| {
            let id = u32::try_from(self.frames.len()).expect("fewer than 2^32 frames");
            self.frames.push(frame);
            FrameId(id)
        })
    }

    /// The id of the stack of these frames, innermost first; made if it is new.
    ///
    /// # Panics
    /// If there are 2^32 stacks.
    pub fn intern_stack(&mut self, frames: &[FrameId]) -> StackId {
        if let Some(&known) = self.stack_ids.get(frames) {
            return known;
        }
        let id = u32::try_from(self.stacks.len()).expect("fewer than 2^32 stacks");
        let stack: Arc<[FrameId]> = frames.into();
        self.stacks.push(Arc::clone(&stack));
        self.stack_ids.insert(stack, StackId(id));
        StackId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_frames_and_stacks_are_stored_once() {
        let mut table = FrameTable::default();
        let frame = |line| Frame { name: Sym(1), filename: Sym(2), line };
        let a = table.intern_frame(frame(1));
        let b = table.intern_frame(frame(2));
        assert_eq!(table.intern_frame(frame(1)), a);
        let stack = table.intern_stack(&[a, b]);
        assert_eq!(table.intern_stack(&[a, b]), stack);
        assert_ne!(table.intern_stack(&[b, a]), stack);
        assert_eq!(table.intern_stack(&[]), StackId::EMPTY);
        assert_eq!((table.frame_count(), table.stack_count()), (2, 3));
        assert_eq!(table.frame(table.stack(stack)[1]).line, 2);
    }
}
