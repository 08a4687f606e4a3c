//! Trace entries and annotations.

use super::decoder::Decoder;
use super::fields::{Field, Within, need, shown};
use crate::error::SnapshotError;
use crate::frames::StackId;
use crate::model::{Action, Annotation, AnnotationStage, DeviceIndex, TraceEntry};
use crate::pickle::Value;
use xmem_types::{Addr, Bytes, StreamId, Sym};

impl<'t> Decoder<'t, '_, '_> {
    /// The list of each device's entries.
    pub(super) fn traces(
        &mut self,
        value: Value,
        at: usize,
    ) -> Result<Vec<Vec<TraceEntry>>, SnapshotError> {
        let (devices, at) = self.list(value, at).within(|| "device_traces".to_owned())?;
        self.budget.take::<Vec<TraceEntry>>(devices.len(), at)?;
        let mut traces = Vec::with_capacity(devices.len());
        for (device, &trace) in devices.iter().enumerate() {
            traces.push(self.trace(trace, at).within(|| format!("device_traces[{device}]"))?);
        }
        Ok(traces)
    }

    fn trace(&mut self, value: Value, at: usize) -> Result<Vec<TraceEntry>, SnapshotError> {
        let (elements, at) = self.list(value, at)?;
        self.budget.take::<TraceEntry>(elements.len(), at)?;
        let mut entries = Vec::with_capacity(elements.len());
        for (i, &element) in elements.iter().enumerate() {
            entries.push(self.entry(element, at).within(|| format!("[{i}]"))?);
        }
        Ok(entries)
    }

    fn entry(&mut self, value: Value, at: usize) -> Result<TraceEntry, SnapshotError> {
        let fields = self.fields(value, at)?;
        let at = fields.at;
        let (mut action, mut addr, mut device_free, mut size) = (None, None, None, None);
        let mut stream = StreamId::default();
        let mut time = None;
        let mut stack = StackId::EMPTY;
        let (mut compile_context, mut user_metadata) = (Sym::EMPTY, Sym::EMPTY);
        for field in fields {
            match field.key {
                b"action" => action = Some(self.action(field)?),
                b"addr" => addr = Some(self.addr(field)?),
                b"device_free" => device_free = Some(self.bytes(field)?),
                b"size" => size = Some(self.bytes(field)?),
                b"stream" => stream = self.stream(field)?,
                b"time_us" => time = Some(self.time(field)?),
                b"frames" => stack = self.stack(field)?,
                b"compile_context" => {
                    if self.text(field)? != b"N/A" {
                        compile_context = self.symbol(field)?;
                    }
                }
                b"user_metadata" => user_metadata = self.symbol(field)?,
                // Written by some versions or tools, of no use for a replay.
                b"forward_frames" | b"pool_id" | b"internal_metadata" | b"category" => {}
                _ => self.unknown("a trace entry", field),
            }
        }
        let mut action = need(action, "action", at)?;
        if let Action::OutOfMemory { device_free: free } = &mut action {
            *free = need(device_free, "device_free", at)?;
            addr = Some(Addr(0));
        }
        Ok(TraceEntry {
            action,
            addr: need(addr, "addr", at)?,
            size: need(size, "size", at)?,
            stream,
            time,
            stack,
            compile_context,
            user_metadata,
        })
    }

    fn action(&mut self, field: Field<'t>) -> Result<Action, SnapshotError> {
        Ok(match self.text(field)? {
            b"alloc" => Action::Alloc,
            b"free_requested" => Action::FreeRequested,
            b"free_completed" => Action::FreeCompleted,
            b"segment_alloc" => Action::SegmentAlloc,
            b"segment_free" => Action::SegmentFree,
            b"segment_map" => Action::SegmentMap,
            b"segment_unmap" => Action::SegmentUnmap,
            b"oom" => Action::OutOfMemory { device_free: Bytes::ZERO },
            b"snapshot" => Action::Snapshot,
            b"annotate" => Action::Annotate,
            other => {
                self.odd("unknown-action", field.at, || {
                    format!("`{}` is not an action that is known; it is kept", shown(other))
                });
                Action::Other(self.symbol(field)?)
            }
        })
    }

    /// The list of annotations.
    pub(super) fn annotations(
        &mut self,
        value: Value,
        at: usize,
    ) -> Result<Vec<Annotation>, SnapshotError> {
        let (elements, at) = self.list(value, at).within(|| "external_annotations".to_owned())?;
        self.budget.take::<Annotation>(elements.len(), at)?;
        let mut annotations = Vec::with_capacity(elements.len());
        for (i, &element) in elements.iter().enumerate() {
            let place = || format!("external_annotations[{i}]");
            annotations.push(self.annotation(element, at).within(place)?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self, value: Value, at: usize) -> Result<Annotation, SnapshotError> {
        let fields = self.fields(value, at)?;
        let at = fields.at;
        let (mut stage, mut name, mut time) = (None, Sym::EMPTY, None);
        let mut device = DeviceIndex::default();
        for field in fields {
            match field.key {
                b"stage" => stage = Some(self.stage(field)?),
                b"name" => name = self.symbol(field)?,
                b"device" => device = self.device(field)?,
                b"time_us" => time = Some(self.time(field)?),
                _ => self.unknown("an annotation", field),
            }
        }
        Ok(Annotation { stage: need(stage, "stage", at)?, name, device, time })
    }

    fn stage(&self, field: Field<'t>) -> Result<AnnotationStage, SnapshotError> {
        match self.text(field)? {
            b"START" => Ok(AnnotationStage::Start),
            b"END" => Ok(AnnotationStage::End),
            other => Err(field.error(format!("is `{}`, expected START or END", shown(other)))),
        }
    }
}
