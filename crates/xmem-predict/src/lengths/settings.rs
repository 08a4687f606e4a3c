//! The question about lengths: which dimension varies, over which extents, and for how long.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A dimension of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// The tokens of a sequence.
    Sequence,
    /// The samples of a batch.
    Batch,
}

impl Dimension {
    /// The name on the command line and in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequence => "seq",
            Self::Batch => "batch",
        }
    }

    /// The name in sentences.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sequence => "sequence length",
            Self::Batch => "batch size",
        }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Sequence => Self::Batch,
            Self::Batch => Self::Sequence,
        }
    }
}

/// A dimension with the extents that it may have: `seq=64..128`, `seq=64..128:8`, `batch=4,8,16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryingDimension {
    /// The dimension.
    pub dimension: Dimension,
    /// Its extents, ascending, at least one. One that stands there twice is drawn twice as often.
    pub extents: Vec<u64>,
    text: String,
}

impl VaryingDimension {
    /// A dimension with these extents, which are ascending; none if there are none, or one that cannot be.
    pub(crate) fn of(dimension: Dimension, extents: Vec<u64>) -> Option<Self> {
        let (first, last) = (*extents.first()?, *extents.last()?);
        let text = format!("{}={first}..{last}", dimension.name());
        (first > 0 && last <= MAX_EXTENT).then_some(Self { dimension, extents, text })
    }
}

/// The length of the longest sequence, and the size of the largest batch, that can be asked for.
const MAX_EXTENT: u64 = 1 << 30;

/// The most extents that one range may have.
const MAX_EXTENTS: u64 = 1 << 20;

/// Text that names no dimension with its extents.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` does not name a dimension and its sizes: {problem}; give a range with both ends, seq=64..128, \
     with a step, seq=64..128:8, or a list, batch=4,8,16"
)]
pub struct ExtentsError {
    text: String,
    problem: &'static str,
}

impl FromStr for VaryingDimension {
    type Err = ExtentsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem| ExtentsError { text: text.to_owned(), problem };
        let (name, extents) = text.split_once('=').ok_or_else(|| error("there is no `=`"))?;
        let dimension = match name.trim() {
            "seq" => Dimension::Sequence,
            "batch" => Dimension::Batch,
            _ => return Err(error("the dimension is neither seq nor batch")),
        };
        let extents = extents.trim();
        let extents = match extents.split_once("..") {
            Some((low, rest)) => range(low, rest).map_err(error)?,
            None => extents.split(',').map(number).collect::<Result<_, _>>().map_err(error)?,
        };
        Ok(Self { dimension, extents: extents.into_iter().collect(), text: text.trim().to_owned() })
    }
}

impl fmt::Display for VaryingDimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn range(low: &str, rest: &str) -> Result<BTreeSet<u64>, &'static str> {
    let (high, step) = match rest.split_once(':') {
        Some((high, step)) => (high, number(step)?),
        None => (rest, 1),
    };
    let (low, high) = (number(low)?, number(high)?);
    if low > high {
        return Err("the range ends before it begins");
    }
    if (high - low) / step >= MAX_EXTENTS {
        return Err("the range has too many sizes");
    }
    Ok((low..=high).step_by(step as usize).collect())
}

fn number(text: &str) -> Result<u64, &'static str> {
    let number: u64 = text.trim().parse().map_err(|_| "a size is not a whole number")?;
    if (1..=MAX_EXTENT).contains(&number) { Ok(number) } else { Err("a size is zero or too large") }
}

/// How the lengths vary over a run, and how often that is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthSettings {
    /// The dimension with the extents that are drawn.
    pub varying: VaryingDimension,
    /// Iterations of a run.
    pub iterations: usize,
    /// Runs, each with an order of its own.
    pub orders: usize,
    /// The seed of the first order; those after it have the numbers that follow.
    pub seed: u64,
    /// The lengths of a single run, in order, instead of random ones.
    pub exact: Option<Vec<u64>>,
}

impl LengthSettings {
    /// Iterations of a run if the caller does not say.
    pub const ITERATIONS: usize = 200;
    /// Runs if the caller does not say.
    pub const ORDERS: usize = 20;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_both_ends_and_lists_are_sorted() {
        for (text, dimension, extents) in [
            ("seq=64..67", Dimension::Sequence, vec![64, 65, 66, 67]),
            ("seq=64..100:16", Dimension::Sequence, vec![64, 80, 96]),
            ("batch=16,4,8,4", Dimension::Batch, vec![4, 8, 16]),
            ("seq=128", Dimension::Sequence, vec![128]),
        ] {
            let read: VaryingDimension = text.parse().expect(text);
            assert_eq!((read.dimension, read.extents.clone()), (dimension, extents));
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_dimension_is_refused() {
        for text in [
            "",
            "seq",
            "seq=",
            "length=4",
            "seq=0",
            "seq=a",
            "seq=128..64",
            "seq=1..2:0",
            "seq=-1",
            "seq=1,,2",
            "seq=1..1073741824",
            "seq=99999999999",
        ] {
            assert!(text.parse::<VaryingDimension>().is_err(), "{text}");
        }
    }
}
