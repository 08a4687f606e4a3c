//! `frames`: the same list object stands in thousands of entries, and is read once.

use super::decoder::Decoder;
use super::fields::{Field, Within};
use crate::error::SnapshotError;
use crate::frames::{Frame, FrameId, StackId};
use crate::pickle::{ContainerId, Value};
use xmem_types::Sym;

/// By container: what it was found to be. A list can only be a stack, a dict only a frame.
#[derive(Debug)]
pub(super) struct Known {
    /// One more than the id; zero where nothing is known, so that untouched memory costs nothing.
    ids: Vec<u32>,
}

impl Known {
    pub(super) fn new(containers: usize) -> Self {
        Self { ids: vec![0; containers] }
    }

    fn stack(&self, list: ContainerId) -> Option<StackId> {
        self.ids[list.index()].checked_sub(1).map(StackId)
    }

    fn is_stack(&mut self, list: ContainerId, stack: StackId) {
        self.ids[list.index()] = stack.0 + 1;
    }

    fn frame(&self, dict: ContainerId) -> Option<FrameId> {
        self.ids[dict.index()].checked_sub(1).map(FrameId)
    }

    fn is_frame(&mut self, dict: ContainerId, frame: FrameId) {
        self.ids[dict.index()] = frame.0 + 1;
    }
}

impl<'t> Decoder<'t, '_, '_> {
    /// The call stack in `field`.
    pub(super) fn stack(&mut self, field: Field<'t>) -> Result<StackId, SnapshotError> {
        let id = match field.value {
            Value::List(id) => id,
            Value::None => return Ok(StackId::EMPTY),
            _ => return Err(field.misfit("a list of frames")),
        };
        if let Some(known) = self.known.stack(id) {
            return Ok(known);
        }
        let (elements, at) = self.list(field.value, field.at)?;
        self.budget.take::<FrameId>(elements.len(), at)?;
        let mut frames = Vec::with_capacity(elements.len());
        for (i, &element) in elements.iter().enumerate() {
            frames.push(self.frame(element, at).within(|| format!("frames[{i}]"))?);
        }
        let stack = self.frames.intern_stack(&frames);
        self.known.is_stack(id, stack);
        Ok(stack)
    }

    fn frame(&mut self, value: Value, at: usize) -> Result<FrameId, SnapshotError> {
        if let Value::Dict(id) = value
            && let Some(known) = self.known.frame(id)
        {
            return Ok(known);
        }
        let fields = self.fields(value, at)?;
        self.budget.take::<[Frame; 2]>(1, fields.at)?;
        let mut frame = Frame { name: Sym::EMPTY, filename: Sym::EMPTY, line: 0 };
        for field in fields {
            match field.key {
                b"name" => frame.name = self.symbol(field)?,
                b"filename" => frame.filename = self.symbol(field)?,
                b"line" => frame.line = self.line(field),
                // Written with augment_with_fx_traces since 2.10.
                b"fx_node_op" | b"fx_node_name" | b"fx_node_info" | b"fx_original_trace" => {}
                _ => self.unknown("a frame", field),
            }
        }
        let frame = self.frames.intern_frame(frame);
        if let Value::Dict(id) = value {
            self.known.is_frame(id, frame);
        }
        Ok(frame)
    }

    /// A line number; zero where it is none. PyTorch writes -1 as a number without sign where it knows no
    /// line (torch/csrc/profiler/python/combined_traceback.cpp), and no line is worth a file.
    fn line(&self, field: Field<'t>) -> u32 {
        self.integer(field).ok().and_then(|line| u32::try_from(line).ok()).unwrap_or(0)
    }
}
