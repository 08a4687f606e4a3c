//! One event's fields as they stand in the file, and which table they belong to.

use crate::number::Scalar;

/// The fields of one event that the columns hold. Of a repeated key the last one counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventFields<'a> {
    pub(crate) phase: Option<&'a str>,
    pub(crate) category: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) process: Option<Scalar<'a>>,
    pub(crate) thread: Option<Scalar<'a>>,
    pub(crate) time: Option<Scalar<'a>>,
    pub(crate) duration: Option<Scalar<'a>>,
    pub(crate) id: Option<Scalar<'a>>,
    pub(crate) args: ArgFields<'a>,
}

/// The fields of an event's `args` that are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ArgFields<'a> {
    pub(crate) address: Option<Scalar<'a>>,
    pub(crate) bytes: Option<Scalar<'a>>,
    pub(crate) total_allocated: Option<Scalar<'a>>,
    pub(crate) total_reserved: Option<Scalar<'a>>,
    pub(crate) device_type: Option<Scalar<'a>>,
    pub(crate) device_index: Option<Scalar<'a>>,
    pub(crate) sequence: Option<Scalar<'a>>,
    pub(crate) forward_thread: Option<Scalar<'a>>,
    pub(crate) index: Option<Scalar<'a>>,
    pub(crate) module: Option<Scalar<'a>>,
    /// Raw JSON of an array, white space included; so the three below.
    pub(crate) dims: Option<&'a [u8]>,
    pub(crate) types: Option<&'a [u8]>,
    pub(crate) strides: Option<&'a [u8]>,
    pub(crate) concrete: Option<&'a [u8]>,
    /// The row of the four in the cache of arguments, if they are in it.
    pub(crate) cached: Option<u32>,
}

/// The keys of an event that are read, in the order in which Kineto writes those of most events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKey {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Time,
    Duration,
    Id,
    Args,
}

impl EventKey {
    pub(crate) fn of(key: &str) -> Option<Self> {
        Some(match key {
            "ph" => Self::Phase,
            "cat" => Self::Category,
            "name" => Self::Name,
            "pid" => Self::Process,
            "tid" => Self::Thread,
            "ts" => Self::Time,
            "dur" => Self::Duration,
            "id" => Self::Id,
            "args" => Self::Args,
            _ => return None,
        })
    }
}

/// The keys of an event's `args` that are read. Names as in PyTorch's
/// torch/csrc/autograd/profiler_kineto.cpp (AddTensorboardFields, AddGenericMetadata).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgKey {
    Address,
    Bytes,
    TotalAllocated,
    TotalReserved,
    DeviceType,
    DeviceIndex,
    Sequence,
    ForwardThread,
    Index,
    Module,
    Dims,
    Types,
    Strides,
    Concrete,
}

impl ArgKey {
    pub(crate) fn of(key: &str) -> Option<Self> {
        Some(match key {
            "Addr" => Self::Address,
            "Bytes" => Self::Bytes,
            "Total Allocated" => Self::TotalAllocated,
            "Total Reserved" => Self::TotalReserved,
            "Device Type" => Self::DeviceType,
            "Device Id" => Self::DeviceIndex,
            "Sequence number" => Self::Sequence,
            "Fwd thread id" => Self::ForwardThread,
            "Ev Idx" => Self::Index,
            "Python module id" => Self::Module,
            "Input Dims" | "Input dims" => Self::Dims,
            "Input type" => Self::Types,
            "Input Strides" => Self::Strides,
            "Concrete Inputs" => Self::Concrete,
            _ => return None,
        })
    }
}

impl<'a> EventFields<'a> {
    /// Sets a field from a string or number; `args` is not one.
    pub(crate) fn set(&mut self, key: EventKey, value: Option<Scalar<'a>>) {
        let text = match value {
            Some(Scalar::Text(text)) => Some(text),
            _ => None,
        };
        match key {
            EventKey::Phase => self.phase = text,
            EventKey::Category => self.category = text,
            EventKey::Name => self.name = text,
            EventKey::Process => self.process = value,
            EventKey::Thread => self.thread = value,
            EventKey::Time => self.time = value,
            EventKey::Duration => self.duration = value,
            EventKey::Id => self.id = value,
            EventKey::Args => {}
        }
    }

    /// The table that the event belongs to.
    pub(crate) fn table(&self) -> Table {
        if let Some(name @ ("[memory]" | "[OutOfMemory]")) = self.name {
            return Table::Memory { out_of_memory: name == "[OutOfMemory]" };
        }
        match (self.phase, self.category) {
            (Some("X"), Some("cpu_op" | "Operator")) => Table::Operator,
            (Some("X"), Some("user_annotation")) => Table::Annotation,
            (Some("X"), Some("python_function")) => Table::Python,
            // torch.autograd.profiler's own exporter writes no category; the process says which
            // side an event is of (torch/autograd/profiler_util.py, export_chrome_trace).
            (Some("X"), None) if self.duration.is_some() && !self.off_host() => Table::Operator,
            (Some("s"), Some("fwdbwd" | "forward_backward")) => Table::FlowStart,
            (Some("f"), Some("fwdbwd" | "forward_backward")) => Table::FlowFinish,
            _ => Table::Other,
        }
    }

    fn off_host(&self) -> bool {
        matches!(self.process, Some(Scalar::Text("CUDA functions" | "Spans" | "Traces")))
    }
}

impl<'a> ArgFields<'a> {
    /// Sets a field from a string or number; the raw arrays are set by [`ArgFields::set_raw`].
    pub(crate) fn set(&mut self, key: ArgKey, value: Option<Scalar<'a>>) {
        match key {
            ArgKey::Address => self.address = value,
            ArgKey::Bytes => self.bytes = value,
            ArgKey::TotalAllocated => self.total_allocated = value,
            ArgKey::TotalReserved => self.total_reserved = value,
            ArgKey::DeviceType => self.device_type = value,
            ArgKey::DeviceIndex => self.device_index = value,
            ArgKey::Sequence => self.sequence = value,
            ArgKey::ForwardThread => self.forward_thread = value,
            ArgKey::Index => self.index = value,
            ArgKey::Module => self.module = value,
            ArgKey::Dims | ArgKey::Types | ArgKey::Strides | ArgKey::Concrete => {
                self.set_raw(key, None);
            }
        }
    }

    /// Sets a field from the text of an array; a number or string field becomes absent.
    pub(crate) fn set_raw(&mut self, key: ArgKey, raw: Option<&'a [u8]>) {
        self.cached = None;
        match key {
            ArgKey::Dims => self.dims = raw,
            ArgKey::Types => self.types = raw,
            ArgKey::Strides => self.strides = raw,
            ArgKey::Concrete => self.concrete = raw,
            _ => self.set(key, None),
        }
    }
}

/// The destination of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Operator,
    Annotation,
    Python,
    Memory { out_of_memory: bool },
    FlowStart,
    FlowFinish,
    Other,
}

impl Table {
    /// Returns whether anything of the `args` of this table's events is read.
    pub(crate) fn has_args(self) -> bool {
        matches!(self, Self::Operator | Self::Annotation | Self::Python | Self::Memory { .. })
    }
}
