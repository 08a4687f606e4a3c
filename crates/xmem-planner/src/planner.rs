//! The planners by name.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Planner {
    /// No reuse until nothing is live.
    Bump,
    /// Best fit on the skyline (Sekiyama et al.): where memory is lowest, the block that lives longest.
    BestFit,
}

/// A name that no planner has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a planner")]
pub struct ParsePlannerError(String);

impl Planner {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Bump, Self::BestFit];

    /// The name of the planner on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bump => "bump",
            Self::BestFit => "bestfit",
        }
    }
}

impl fmt::Display for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Planner {
    type Err = ParsePlannerError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.iter().find(|planner| planner.name() == name);
        named.copied().ok_or_else(|| ParsePlannerError(name.to_owned()))
    }
}
