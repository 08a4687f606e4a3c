//! The growth that is accepted.

use super::ByteChange;
use std::fmt;
use std::str::FromStr;
use xmem_types::Bytes;

/// A peak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeakFigure {
    /// Peak allocated.
    Allocated,
    /// Peak reserved.
    #[default]
    Reserved,
    /// Peak of the device, with the context.
    Device,
}

impl PeakFigure {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Reserved => "reserved",
            Self::Device => "device",
        }
    }
}

/// The growth from the first run to the second that is accepted: a share of the first, or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthLimit {
    /// Thousandths of a percent.
    Share(u64),
    /// Bytes.
    Size(Bytes),
}

impl GrowthLimit {
    /// Returns whether a figure grew by more.
    #[must_use]
    pub fn is_exceeded_by(self, change: ByteChange) -> bool {
        if change.b <= change.a {
            return false;
        }
        match self {
            Self::Share(share) => {
                let grown = u128::from(change.size().get()) * 100_000;
                grown > u128::from(change.a.get()) * u128::from(share)
            }
            Self::Size(size) => change.size() > size,
        }
    }
}

/// Text that is not a limit of growth.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a limit: write a share such as 1% or 0.5%, or a size such as 100MiB")]
pub struct ParseGrowthLimitError(String);

impl FromStr for GrowthLimit {
    type Err = ParseGrowthLimitError;

    fn from_str(text: &str) -> Result<Self, ParseGrowthLimitError> {
        let error = || ParseGrowthLimitError(text.to_owned());
        // `5` may be meant as a share, or in megabytes.
        let is_bare = text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if is_bare && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
            return Err(error());
        }
        let Some(share) = text.trim().strip_suffix('%') else {
            return text.parse().map(Self::Size).map_err(|_| error());
        };
        let (whole, decimals) = share.trim().split_once('.').unwrap_or((share.trim(), "0"));
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 3 || whole.len() > 6 {
            return Err(error());
        }
        let whole: u64 = whole.parse().map_err(|_| error())?;
        let decimals: u64 = format!("{decimals:0<3}").parse().map_err(|_| error())?;
        Ok(Self::Share(whole * 1000 + decimals))
    }
}

impl fmt::Display for GrowthLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => write!(f, "{}%", *share as f64 / 1000.0),
            Self::Size(size) => size.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_share_or_a_size() {
        for (text, limit, shown) in [
            ("1%", GrowthLimit::Share(1000), "1%"),
            ("0.5 %", GrowthLimit::Share(500), "0.5%"),
            ("12.125%", GrowthLimit::Share(12_125), "12.125%"),
            ("250%", GrowthLimit::Share(250_000), "250%"),
            ("0%", GrowthLimit::Share(0), "0%"),
            ("100MiB", GrowthLimit::Size(Bytes::mib(100)), "100.00 MiB"),
            ("0", GrowthLimit::Size(Bytes(0)), "0 B"),
            ("512B", GrowthLimit::Size(Bytes(512)), "512 B"),
        ] {
            let parsed: GrowthLimit = text.parse().expect(text);
            assert_eq!((parsed, parsed.to_string().as_str()), (limit, shown), "{text}");
        }
        for text in
            ["", "5", "0.5", "%", "-1%", "1.2345%", "1.%", ".5%", "nan%", "1e3%", "1234567%", "x"]
        {
            assert!(text.parse::<GrowthLimit>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_is_exceeded_by_growth_beyond_it_alone() {
        let share = GrowthLimit::Share(1000);
        for (limit, a, b, is_exceeded) in [
            (share, 1000, 1010, false),
            (share, 1000, 1011, true),
            (share, 1000, 10, false),
            (share, 0, 1, true),
            (share, 0, 0, false),
            (share, u64::MAX / 2, u64::MAX, true),
            (GrowthLimit::Share(0), 7, 8, true),
            (GrowthLimit::Size(Bytes(10)), 5, 15, false),
            (GrowthLimit::Size(Bytes(10)), 5, 16, true),
            (GrowthLimit::Size(Bytes(10)), 16, 5, false),
        ] {
            let change = ByteChange { a: Bytes(a), b: Bytes(b) };
            assert_eq!(limit.is_exceeded_by(change), is_exceeded, "{limit} {change:?}");
        }
    }
}
