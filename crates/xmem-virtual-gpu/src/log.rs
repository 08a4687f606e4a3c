//! The log of a run: calls that are not implemented, and what the native library could not do.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use xmem_types::printable;

/// The file into which all processes of a command write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    path: PathBuf,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Call {
    /// A call that is not implemented.
    Unimplemented {
        /// The function.
        function: String,
        /// The status that it returned; zero if the program was told that the call succeeded.
        status: i32,
    },
    /// A call that returned zero for a size which is not known without a device.
    UnknownSize(String),
    /// A call that returned an estimate of a size which is not known without a device.
    EstimatedSize(String),
    /// cuDNN could not be asked for workspaces of convolutions, for this reason.
    Cudnn(String),
    /// Device memory could not be reserved, for this reason.
    Error(String),
}

impl Log {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its entries, each once and in order.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self) -> io::Result<Vec<Call>> {
        let text = std::fs::read(&self.path)?;
        Ok(entries(&String::from_utf8_lossy(&text)))
    }
}

fn entries(text: &str) -> Vec<Call> {
    let entry = |line: &str| {
        let (kind, rest) = line.split_once(' ')?;
        let rest = printable(rest).into_owned();
        match kind {
            "call" => {
                let (function, status) = rest.split_once(' ')?;
                let status = status.parse().ok()?;
                Some(Call::Unimplemented { function: function.to_owned(), status })
            }
            "size" => Some(Call::UnknownSize(rest)),
            "estimate" => Some(Call::EstimatedSize(rest)),
            "cudnn" => Some(Call::Cudnn(rest)),
            "error" => Some(Call::Error(rest)),
            _ => None,
        }
    };
    text.lines().filter_map(entry).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_once_each_and_odd_lines_are_not() {
        let text = "call cudaFoo 801\nnonsense\ncudnn 90100 is old\ncall cudaFoo 801\ncall x\nsize cudnnBar\nestimate cudnnBaz\n";
        assert_eq!(
            entries(text),
            [
                Call::Unimplemented { function: "cudaFoo".to_owned(), status: 801 },
                Call::UnknownSize("cudnnBar".to_owned()),
                Call::EstimatedSize("cudnnBaz".to_owned()),
                Call::Cudnn("90100 is old".to_owned()),
            ]
        );
    }
}
