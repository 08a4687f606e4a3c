//! Memory of a device that is to stay free.

use std::fmt;
use std::str::FromStr;
use xmem::Bytes;

/// Memory of a device that is to stay free: a share of it, or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// Thousandths of the device's memory, below 1,000.
    PerMille(u16),
    /// Bytes.
    Size(Bytes),
}

impl Margin {
    /// No margin.
    pub const NONE: Self = Self::PerMille(0);

    /// The bytes of a device with `capacity` that are to stay free, rounded down.
    #[must_use]
    pub fn of(self, capacity: Bytes) -> Bytes {
        match self {
            Self::PerMille(share) => {
                Bytes((u128::from(capacity.get()) * u128::from(share) / 1000) as u64)
            }
            Self::Size(size) => size.min(capacity),
        }
    }

    /// The smallest capacity of which `need` leaves the margin free.
    #[must_use]
    pub fn around(self, need: Bytes) -> Bytes {
        match self {
            // As `of` rounds down, this is the smallest capacity of which more than `need` - 1 is left.
            Self::PerMille(share) => {
                let Some(less) = need.get().checked_sub(1) else { return Bytes::ZERO };
                let left = u128::from(1000 - share.min(999));
                let capacity = u128::from(less) * 1000 / left + 1;
                Bytes(u64::try_from(capacity).unwrap_or(u64::MAX))
            }
            Self::Size(size) => need + size,
        }
    }
}

impl Default for Margin {
    fn default() -> Self {
        Self::NONE
    }
}

/// Text that is not a margin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a margin: write a share such as 5% or 2.5%, or a size such as 2GiB")]
pub struct ParseMarginError(String);

impl FromStr for Margin {
    type Err = ParseMarginError;

    fn from_str(text: &str) -> Result<Self, ParseMarginError> {
        let error = || ParseMarginError(text.to_owned());
        let Some(share) = text.trim().strip_suffix('%') else {
            return text.parse().map(Self::Size).map_err(|_| error());
        };
        let (whole, tenths) = share.trim().split_once('.').unwrap_or((share.trim(), "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(tenths) || tenths.len() != 1 {
            return Err(error());
        }
        let whole: u16 = whole.parse().map_err(|_| error())?;
        let tenths: u16 = tenths.parse().map_err(|_| error())?;
        if whole > 99 {
            return Err(error());
        }
        Ok(Self::PerMille(whole * 10 + tenths))
    }
}

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerMille(share) if share % 10 == 0 => write!(f, "{}%", share / 10),
            Self::PerMille(share) => write!(f, "{}.{}%", share / 10, share % 10),
            Self::Size(size) => size.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_a_share_or_a_size() {
        for (text, margin, shown) in [
            ("5%", Margin::PerMille(50), "5%"),
            ("2.5 %", Margin::PerMille(25), "2.5%"),
            ("0%", Margin::NONE, "0%"),
            ("99.9%", Margin::PerMille(999), "99.9%"),
            ("2GiB", Margin::Size(Bytes::gib(2)), "2.00 GiB"),
        ] {
            let parsed: Margin = text.parse().expect(text);
            assert_eq!((parsed, parsed.to_string().as_str()), (margin, shown), "{text}");
        }
        for text in ["", "%", "100%", "-1%", "5.25%", "5", "1.%", ".5%", "nan%"] {
            if text == "5" {
                // A number without a unit is a size, as everywhere.
                assert_eq!(text.parse(), Ok(Margin::Size(Bytes(5))));
                continue;
            }
            assert!(text.parse::<Margin>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_margin_is_never_more_than_the_device() {
        assert_eq!(Margin::PerMille(50).of(Bytes(999)), Bytes(49));
        assert_eq!(Margin::PerMille(999).of(Bytes(u64::MAX)).get(), u64::MAX / 1000 * 999 + 614);
        assert_eq!(Margin::Size(Bytes::gib(9)).of(Bytes::gib(2)), Bytes::gib(2));
    }

    #[test]
    fn the_capacity_around_a_need_is_the_smallest_that_leaves_the_margin() {
        for share in [0, 1, 25, 50, 333, 500, 999] {
            let margin = Margin::PerMille(share);
            for need in [0, 1, 7, 999, 1000, 1001, 123_456_789] {
                let (need, capacity) = (Bytes(need), margin.around(Bytes(need)));
                assert!(capacity - margin.of(capacity) >= need, "{share} {need:?}");
                if capacity > Bytes::ZERO {
                    let less = capacity - Bytes(1);
                    assert!(less - margin.of(less) < need, "{share} {need:?}");
                }
            }
        }
        assert_eq!(Margin::Size(Bytes::gib(2)).around(Bytes::gib(10)), Bytes::gib(12));
    }
}
