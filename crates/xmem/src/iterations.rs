//! The iterations that an estimate is about.

use std::fmt;
use std::str::FromStr;
use xmem_types::IterationId;

/// Iterations `from..to`, counted from 0, `to` not included.
///
/// The replay always begins with the trace, as the allocator's state depends on all that came
/// before; it ends after the last selected iteration, and peaks are looked for among the selected
/// ones. What comes before iteration 0 belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iterations {
    from: u32,
    to: u32,
}

impl Iterations {
    /// `from..to`; none if that is empty.
    #[must_use]
    pub const fn new(from: IterationId, to: IterationId) -> Option<Self> {
        if from.0 < to.0 { Some(Self { from: from.0, to: to.0 }) } else { None }
    }

    /// First iteration.
    #[must_use]
    pub const fn from(self) -> IterationId {
        IterationId(self.from)
    }

    /// The iteration after the last.
    #[must_use]
    pub const fn to(self) -> IterationId {
        IterationId(self.to)
    }
}

impl fmt::Display for Iterations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.from, self.to)
    }
}

/// Text that selects no iterations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` does not select iterations: give a number from the start, like 2, or a range counted \
     from 0 without its end, like 1..3"
)]
pub struct ParseIterationsError {
    text: String,
}

impl FromStr for Iterations {
    type Err = ParseIterationsError;

    /// Reads `2` (the first two) and `1..3` (the second and the third).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseIterationsError { text: text.to_owned() };
        let number = |t: &str| t.trim().parse::<u32>().map_err(|_| error());
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (number(from)?, number(to)?),
            None => (0, number(text)?),
        };
        Self::new(IterationId(from), IterationId(to)).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_count_and_a_range_excludes_its_end() {
        for (text, from, to) in [("2", 0, 2), ("0..1", 0, 1), (" 1 .. 3 ", 1, 3)] {
            assert_eq!(text.parse(), Ok(Iterations { from, to }), "{text}");
        }
        for text in ["", "0", "3..3", "3..1", "..", "1..", "-1", "a", "1..2..3", "99999999999"] {
            assert!(text.parse::<Iterations>().is_err(), "{text}");
        }
    }
}
