//! Time in exact nanoseconds.

use std::fmt;
use std::ops::{Add, Sub};

/// A point in time, or a span of it, in nanoseconds.
///
/// Points are relative to an origin that the trace defines (its base time). Kineto writes
/// microseconds with three decimals; an `f64` of an absolute timestamp would lose them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);

impl Nanos {
    /// The origin, or an empty span.
    pub const ZERO: Self = Self(0);
    /// Later than any point in a trace.
    pub const MAX: Self = Self(i64::MAX);
    /// Earlier than any point in a trace.
    pub const MIN: Self = Self(i64::MIN);

    /// The plain number of nanoseconds.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} µs", self.0.div_euclid(1000), self.0.rem_euclid(1000))
    }
}
