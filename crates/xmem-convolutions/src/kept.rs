//! What a recording says about cuDNN: the library of its environment, and answers that were kept with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use xmem_types::Bytes;

/// The workspaces that a cuDNN library named for the convolutions of a job on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptAnswers {
    /// The release of the library (`9.19.0`).
    pub release: String,
    /// The device, as it was described to the library: JSON.
    pub device: String,
    /// The workspaces of each convolution in the order of its plans. A convolution is a line of text, as the
    /// library's process is asked.
    pub workspaces: BTreeMap<String, Vec<Bytes>>,
}

/// What a recording says about cuDNN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedCudnn {
    /// The library in the recorded environment.
    pub library: Option<PathBuf>,
    /// The release of that library (`9.19.0`).
    pub release: Option<String>,
    /// The answers that were kept, at most one entry for each device.
    pub answers: Vec<KeptAnswers>,
}
