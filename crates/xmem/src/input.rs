//! The input of a job: a profiler trace or a memory snapshot, distinguished by content.

use thiserror::Error;
use xmem_snapshot::{Limits, Snapshot, SnapshotError};
use xmem_trace::{InputFile, ReadError, ReadOptions, Trace};
use xmem_types::{Bytes, Diagnostics};

/// An input that cannot be read.
#[derive(Debug, Error)]
pub enum InputError {
    /// The trace.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// The memory snapshot.
    #[error("cannot read the memory snapshot `{input}`")]
    Snapshot {
        /// The path as given, or what stands for it.
        input: String,
        /// The problem.
        #[source]
        source: Box<SnapshotError>,
    },
}

/// What an input is.
pub(crate) enum Input {
    Trace(Box<Trace>, Diagnostics),
    Snapshot(Box<Snapshot>, Diagnostics),
}

impl Input {
    /// Reads a file.
    pub(crate) fn of_file(file: InputFile, options: &ReadOptions) -> Result<Self, InputError> {
        if !xmem_snapshot::is_pickle(file.head()) {
            return Self::of_trace(file.read(options)?);
        }
        let name = file.name().to_owned();
        let limits = limits(options);
        let bytes = file.into_bytes(limits.memory)?;
        Self::of_pickle(&bytes, &name, &limits)
    }

    /// Reads bytes in memory, which messages call `name`.
    pub(crate) fn of_bytes(
        bytes: &[u8],
        name: &str,
        options: &ReadOptions,
    ) -> Result<Self, InputError> {
        match xmem_snapshot::is_pickle(bytes) {
            true => Self::of_pickle(bytes, name, &limits(options)),
            false => Self::of_trace(xmem_trace::read_named_bytes(bytes, name, options)?),
        }
    }

    fn of_trace((trace, notes): (Trace, Diagnostics)) -> Result<Self, InputError> {
        Ok(Self::Trace(Box::new(trace), notes))
    }

    fn of_pickle(bytes: &[u8], name: &str, limits: &Limits) -> Result<Self, InputError> {
        tracing::debug!(input = name, "reading a memory snapshot");
        let read = xmem_snapshot::read(bytes, limits);
        let (snapshot, notes) = read.map_err(|source| InputError::Snapshot {
            input: name.to_owned(),
            source: Box::new(source),
        })?;
        Ok(Self::Snapshot(Box::new(snapshot), notes))
    }
}

/// The limits on a snapshot: its own, unless the caller chose others for traces.
fn limits(options: &ReadOptions) -> Limits {
    let (usual, own) = (ReadOptions::default(), Limits::default());
    let chosen = Some(options.inflate_limit).filter(|&limit| limit != usual.inflate_limit);
    let memory: Bytes = chosen.unwrap_or(own.memory);
    Limits { memory, ratio: options.ratio_limit, ..own }
}
