//! Assumptions about values that a virtual GPU does not compute and that decide sizes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Assumed shares, by the name of the assumption.
///
/// As text, `NAME=SHARE` or `NAME=LOW..HIGH`, separated by commas: `nonzero=0.1..0.5,routing=0`. The names are
/// `nonzero`, the share of elements that are not zero; `unique`, the share of elements that are distinct; and
/// `routing`, the share of rows whose largest elements are in the same places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumptions(BTreeMap<&'static str, Shares>);

/// The lowest and the highest share; the same where one is assumed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shares {
    low: f64,
    high: f64,
}

/// Peaks of the virtual GPU's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DevicePeaks {
    /// Allocated memory.
    pub allocated: u64,
    /// Reserved memory.
    pub reserved: u64,
}

/// An operator whose sizes follow from an assumption.
#[cfg(unix)]
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Assumed {
    pub(crate) operator: String,
    pub(crate) assumption: Option<String>,
    share: Option<f64>,
    pub(crate) bounded: bool,
    times: u64,
}

/// The names of all assumptions.
const NAMES: [&str; 3] = ["nonzero", "routing", "unique"];

impl Assumptions {
    /// Returns whether a share has a range.
    #[must_use]
    pub fn have_ranges(&self) -> bool {
        self.0.values().any(Shares::is_range)
    }

    /// The lowest shares alone.
    #[must_use]
    pub fn lowest(&self) -> Self {
        let low = |shares: &Shares| Shares { low: shares.low, high: shares.low };
        Self(self.0.iter().map(|(name, shares)| (*name, low(shares))).collect())
    }

    /// The highest shares, by name.
    #[cfg(unix)]
    pub(crate) fn highest(&self) -> BTreeMap<&'static str, f64> {
        self.0.iter().map(|(name, shares)| (*name, shares.high)).collect()
    }

    /// Names of assumptions with one share, or of all if the peaks at the lowest shares are known.
    #[cfg(unix)]
    pub(crate) fn bounded(&self, is_lowest_known: bool) -> Vec<&'static str> {
        let bounded = self.0.iter().filter(|(_, shares)| is_lowest_known || !shares.is_range());
        bounded.map(|(name, _)| *name).collect()
    }
}

impl Shares {
    fn is_range(&self) -> bool {
        self.low < self.high
    }
}

impl FromStr for Assumptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

fn one(text: &str) -> Result<(&'static str, Shares), String> {
    let expected = || {
        "expected NAME=SHARE or NAME=LOW..HIGH with a name of nonzero, routing, unique and shares from 0 to 1, \
         for example nonzero=0.1..0.5"
            .to_owned()
    };
    let (name, shares) = text.split_once('=').ok_or_else(expected)?;
    let name = NAMES.into_iter().find(|known| *known == name).ok_or_else(expected)?;
    let (low, high) = shares.split_once("..").unwrap_or((shares, shares));
    let share = |text: &str| text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    let (low, high) = share(low).zip(share(high)).ok_or_else(expected)?;
    if low > high { Err(expected()) } else { Ok((name, Shares { low, high })) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_ranges_are_read() {
        let assume: Assumptions =
            "nonzero=0.1..0.5,routing=0".parse().expect("a range and a share");
        assert!(assume.have_ranges());
        assert_eq!(assume.highest(), [("nonzero", 0.5), ("routing", 0.0)].into());
        assert_eq!(assume.lowest().highest(), [("nonzero", 0.1), ("routing", 0.0)].into());
        assert!(!assume.lowest().have_ranges());
        assert_eq!(assume.bounded(false), ["routing"], "nothing is known at 0.1");
        assert_eq!(assume.bounded(true), ["nonzero", "routing"]);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "nonzero",
            "nonzero=",
            "mask=0.5",
            "nonzero=2",
            "unique=0.5..0.1",
            "unique=0..",
            "nonzero=NaN",
        ] {
            text.parse::<Assumptions>().expect_err(text);
        }
    }
}
