//! What the checks found.

use crate::error::Error;

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
        if self.list.is_empty() { Ok(()) } else { Err(Error::Untidy { count: self.list.len() }) }
    }

    /// The problems as text, for tests.
    #[cfg(test)]
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.list.iter().map(String::as_str).collect()
    }
}
