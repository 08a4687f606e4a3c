//! What the checks found.

use xmem_task::{Error, TaskError};

/// Tidy found something; each finding was printed.
#[derive(Debug, thiserror::Error)]
#[error("tidy: {count} problems, see above")]
struct UntidyError {
    count: usize,
}

impl TaskError for UntidyError {}

/// Problems, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<String>,
}

impl Findings {
    /// Adds a problem: where it is and what to do about it.
    pub(crate) fn add(&mut self, place: &str, problem: impl Into<String>) {
        self.list.push(format!("{place}: {}", problem.into()));
    }

    /// Prints the problems; succeeds if there are none.
    pub(crate) fn conclude(self) -> Result<(), Error> {
        for problem in &self.list {
            println!("{problem}");
        }
        match self.list.len() {
            0 => Ok(()),
            count => Err(UntidyError { count }.into()),
        }
    }

    /// The problems as text, for tests.
    #[cfg(test)]
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.list.iter().map(String::as_str).collect()
    }
}
