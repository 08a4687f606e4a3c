//! A part file: a trace beside the output, until it is saved.

use crate::recorded::RedirectedCalls;
use tempfile::NamedTempFile;
use xmem_types::Bytes;

/// A trace in a file beside the output.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) file: NamedTempFile,
    /// Size of the trace before compression.
    pub(crate) text: Bytes,
    /// Size of the file.
    pub(crate) size: Bytes,
    /// Redirected calls, from the trace's metadata.
    pub(crate) redirected: Vec<RedirectedCalls>,
}
