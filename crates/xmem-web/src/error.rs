//! Calls that fail, in words for the page.

use std::error::Error as _;
use thiserror::Error;
use xmem::devices::DeviceNameError;
use xmem_estimate::GraphJobError;
use xmem_graph::GraphError;

/// A call that fails.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No graph, or a damaged one.
    #[error("cannot read the file")]
    Graph(#[from] GraphError),
    /// The job cannot be estimated.
    #[error(transparent)]
    Job(#[from] GraphJobError),
    /// A device that is not known.
    #[error(transparent)]
    Device(#[from] DeviceNameError),
    /// Settings that are not the page's.
    #[error("the settings cannot be read")]
    Settings(#[from] serde_json::Error),
    /// A loss that is not known.
    #[error("unknown loss `{name}`")]
    Loss {
        /// The name.
        name: String,
    },
    /// A question before a graph was opened.
    #[error("no graph is open")]
    NoGraph,
}

impl SessionError {
    /// The message with its causes.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !words.ends_with(&text) {
                words = format!("{words}: {text}");
            }
            cause = error.source();
        }
        words
    }
}
