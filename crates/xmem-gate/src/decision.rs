//! What is decided about a job, and what follows from it.

use std::fmt;
use std::str::FromStr;
use xmem::Decision;

/// What a gate does with jobs that do not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// No job is looked at.
    Off,
    /// They are let through with a warning.
    Warn,
    /// They are rejected.
    #[default]
    Reject,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Off, Self::Warn, Self::Reject];

    /// The name in settings (`reject`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Reject => "reject",
        }
    }

    /// What follows from a decision. A job without a verdict is let through with a warning, unless the
    /// policy of its partition fails closed.
    #[must_use]
    pub const fn action(self, decision: Decision, fail_closed: bool) -> Action {
        match (self, decision) {
            (Self::Off, _) | (_, Decision::Fits) => Action::Admit,
            (Self::Reject, Decision::DoesNotFit) => Action::Reject,
            (Self::Reject, Decision::NoVerdict) if fail_closed => Action::Reject,
            _ => Action::Warn,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| format!("`{text}` is not a policy: write off, warn or reject"))
    }
}

/// What a gate does with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Let it through.
    Admit,
    /// Let it through with a warning.
    Warn,
    /// Reject it.
    Reject,
}

impl Action {
    /// The name in machine-readable output (`admit`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Warn => "warn",
            Self::Reject => "reject",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_fit_is_rejected_unless_the_partition_fails_closed() {
        use Action::{Admit, Reject, Warn};
        use Decision::{DoesNotFit, Fits, NoVerdict, OverRequested, Tight};
        for (policy, closed, actions) in [
            (Policy::Off, true, [Admit, Admit, Admit, Admit, Admit]),
            (Policy::Warn, true, [Admit, Warn, Warn, Warn, Warn]),
            (Policy::Reject, false, [Admit, Warn, Warn, Warn, Reject]),
            (Policy::Reject, true, [Admit, Warn, Warn, Reject, Reject]),
        ] {
            let decisions = [Fits, OverRequested, Tight, NoVerdict, DoesNotFit];
            assert_eq!(decisions.map(|d| policy.action(d, closed)), actions, "{policy} {closed}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for decision in Decision::ALL {
            assert_eq!(Decision::named(decision.name()), Some(decision));
        }
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        assert!("strict".parse::<Policy>().is_err());
    }
}
