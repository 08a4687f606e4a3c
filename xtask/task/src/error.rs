//! What any task can fail with.

use std::path::PathBuf;

/// Why a task did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A command could not be started.
    #[error("cannot run `{command}`")]
    Start {
        /// The command.
        command: String,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// A command ran and failed; its own output says why.
    #[error("`{command}` failed")]
    Failed {
        /// The command.
        command: String,
    },
    /// A file or folder could not be read or written.
    #[error("cannot access {}", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// `cargo metadata` said something unexpected.
    #[error("cannot understand the output of cargo metadata")]
    Metadata(#[source] serde_json::Error),
    /// xmem answered with something else than JSON.
    #[error("cannot understand the answer of xmem")]
    Answer(#[source] serde_json::Error),
    /// A data file of a task does not have the tables and keys that it should have.
    #[error("cannot read the data in {}", .path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: toml::de::Error,
    },
    /// A file with figures is not what a task, a recording or Criterion wrote.
    #[error("cannot understand the figures in {}", .path.display())]
    Figures {
        /// The file.
        path: PathBuf,
    },
    /// Cases did not come out as they should; each complaint was printed.
    #[error("{task}: {count} of the cases failed, see above")]
    Cases {
        /// The task.
        task: &'static str,
        /// The number of failed cases.
        count: usize,
    },
    /// The machine cannot have what the task needs.
    #[error("skipped: {reason}")]
    Skipped {
        /// The reason.
        reason: &'static str,
    },
    /// One task alone can fail like this.
    #[error(transparent)]
    Task(Box<dyn std::error::Error + Send + Sync>),
}

/// An error of one task, which is beside what can fail. It becomes an [`Error::Task`].
pub trait TaskError: std::error::Error + Send + Sync + 'static {}

impl<E: TaskError> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Task(Box::new(error))
    }
}

impl Error {
    /// For `map_err` on an I/O result about `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// For `map_err` on the result of starting `command`.
    pub fn start(command: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let command = command.into();
        move |source| Self::Start { command, source }
    }
}
