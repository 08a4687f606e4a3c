//! The first stage: what the file says beside its events. It is taken out of the trace, so that no later stage meets a mark of
//! the recorder among the operators.

use crate::gpu::{self, GpuMemory, Selection};
use crate::marks::{self, Marks};
use crate::recording::{self, Model, Recording, VirtualGpu};
use crate::{completeness, unseen_frees};
use xmem_trace::{DeviceKind, Trace};
use xmem_types::Diagnostics;

/// The notes of a recording.
pub(super) struct Notes {
    /// The device whose memory is analyzed.
    pub(super) device: DeviceKind,
    /// The notes of `xmem profile`, if they can be read.
    pub(super) recording: Option<Recording>,
    /// Whether there are any, even if they cannot be read.
    pub(super) has_notes: bool,
    pub(super) marks: Marks,
    /// Whether what follows the recorded iterations is there, and cannot be read.
    pub(super) has_unread_rest: bool,
    /// What the file says about the memory of its GPU, if that is analyzed.
    pub(super) gpu: Option<GpuMemory>,
}

impl Notes {
    /// Takes them out of the trace. Of several GPUs, the one with this index is chosen.
    pub(super) fn take_out(
        trace: &mut Trace,
        (device, index): (DeviceKind, Option<i16>),
        odd: &mut Diagnostics,
    ) -> Self {
        let recording = trace.header.take_extra(recording::KEY);
        let has_notes = recording.is_some();
        let recording = recording.and_then(|raw| recording::read(&raw, odd));
        let answers = trace.header.take_extra(recording::CONVOLUTIONS_KEY);
        let tried = trace.header.take_extra(recording::MEASURES_KEY);
        let rest = trace.header.take_extra(recording::REST_KEY);
        let has_rest = rest.is_some();
        let rest = rest.and_then(|raw| recording::read_rest(&raw, odd));
        // Without the notes of the iterations before, it stands for nothing.
        let has_unread_rest = has_rest && (rest.is_none() || recording.is_none());
        let recording = recording.map(|mut recording| {
            recording.add_rest(rest);
            let answers = answers.map(|raw| recording::read_convolutions(&raw, odd));
            recording.cudnn_answers = answers.unwrap_or_default();
            recording.tried = tried.and_then(|raw| recording::read_measures(&raw, odd));
            recording
        });
        completeness::report(trace, recording.as_ref(), device, odd);
        if let Some(facts) = recording.as_ref().and_then(|r| r.virtual_gpu.as_ref()) {
            facts.report(odd);
        }
        let marks = marks::take_out(trace);
        if let Some(recording) = recording.as_ref().filter(|_| device == DeviceKind::Cuda) {
            unseen_frees::add(recording, &mut trace.memory, odd);
        }
        let gpu = (device == DeviceKind::Cuda).then(|| gpu::prepare(trace, index, odd));
        Self { device, recording, has_notes, marks, has_unread_rest, gpu }
    }

    /// The events of memory that are analyzed.
    pub(super) fn selection(&self) -> Selection {
        self.gpu.as_ref().map_or(Selection::kind(self.device), |gpu| gpu.selection)
    }

    /// The facts of the virtual GPU, if the job was recorded on one.
    pub(super) fn virtual_gpu(&self) -> Option<&VirtualGpu> {
        self.recording.as_ref()?.virtual_gpu.as_ref()
    }

    /// The models that the recorder saw.
    pub(super) fn models(&self) -> &[Model] {
        self.recording.as_ref().map_or(&[], |recording| &recording.models)
    }
}
