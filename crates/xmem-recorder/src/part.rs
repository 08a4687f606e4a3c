//! A part file: a trace beside the output, until it is saved.

use crate::outline::Facts;
use crate::recorded::RecordedRest;
use xmem_tempfiles::TemporaryFile;
use xmem_types::Bytes;

/// A trace in a file beside the output.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) file: TemporaryFile,
    /// Size of the trace before compression.
    pub(crate) text: Bytes,
    /// Size of the file.
    pub(crate) size: Bytes,
    /// True if it ends as a JSON object does.
    pub(crate) has_end: bool,
    /// The rest of the script, if it was recorded.
    pub(crate) rest: Option<RecordedRest>,
    /// Facts of the trace's metadata.
    pub(crate) facts: Facts,
}
