//! Time in exact nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

/// A point in time, or a span of it, in nanoseconds.
///
/// Points are relative to an origin that the trace defines (its base time). Kineto writes
/// microseconds with three decimals; an `f64` of an absolute timestamp would lose them. Arithmetic
/// saturates: times come from files that may say anything.
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

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::add)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} µs", self.0.div_euclid(1000), self.0.rem_euclid(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_64_bits_saturate_instead_of_wrapping() {
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!(Nanos::MIN - Nanos::MAX, Nanos::MIN);
        assert_eq!([Nanos::MAX; 2].into_iter().sum::<Nanos>(), Nanos::MAX);
    }
}
