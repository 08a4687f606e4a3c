//! The saved tensors that may wait on the device, as a size or as a part of all of them.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use xmem_types::Bytes;

/// The saved tensors that may wait on the device for their backward pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// A size.
    Size(Bytes),
    /// A part of all of them: from 0 to 1.
    Share(f64),
}

/// Text that is no budget.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is neither a size, for example 2GiB, nor a share from 0% to 100%")]
pub struct ParseBudgetError(String);

impl Default for Budget {
    fn default() -> Self {
        Self::Share(0.5)
    }
}

impl Budget {
    /// The bytes of a step whose saved tensors have `saved` bytes.
    #[must_use]
    pub fn of(self, saved: Bytes) -> Bytes {
        match self {
            Self::Size(size) => size,
            Self::Share(share) => Bytes((saved.get() as f64 * share) as u64),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "{size}"),
            Self::Share(share) => write!(f, "{}%", 100.0 * share),
        }
    }
}

impl FromStr for Budget {
    type Err = ParseBudgetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseBudgetError(text.to_owned());
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent: f64 = percent.trim().parse().map_err(|_| unknown())?;
                let is_share = (0.0..=100.0).contains(&percent);
                is_share.then_some(Self::Share(percent / 100.0)).ok_or_else(unknown)
            }
            None => text.parse().map(Self::Size).map_err(|_| unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_size_or_a_share() {
        for (text, expected) in [
            ("2GiB", Some(Budget::Size(Bytes::gib(2)))),
            ("25%", Some(Budget::Share(0.25))),
            ("0%", Some(Budget::Share(0.0))),
            ("101%", None),
            ("NaN%", None),
            ("-1%", None),
            ("half", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
        assert_eq!(Budget::Share(0.5).of(Bytes(7)), Bytes(3));
    }
}
