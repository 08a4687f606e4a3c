//! The batch sizes that are asked about: a list, or a range in which the last one that fits is looked for.

use super::error::EstimateGraphFailure;
use crate::values::count;
use std::num::NonZeroU32;

/// An item of `--batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchArg {
    One(NonZeroU32),
    Range(BatchRange),
}

/// Batch sizes from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchRange {
    pub(super) low: NonZeroU32,
    pub(super) high: NonZeroU32,
}

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Batches {
    /// The size that the graph was exported with.
    Exported,
    Listed(Vec<NonZeroU32>),
    Range(BatchRange),
}

/// Parses `32` or `1..512`.
pub(crate) fn batch(text: &str) -> Result<BatchArg, String> {
    let Some((low, high)) = text.split_once("..") else {
        return count::<NonZeroU32>(text).map(BatchArg::One);
    };
    let (low, high) = (count::<NonZeroU32>(low)?, count::<NonZeroU32>(high)?);
    if low > high {
        return Err("the range ends before it begins".to_owned());
    }
    Ok(BatchArg::Range(BatchRange { low, high }))
}

impl Batches {
    /// What the items of `--batch` ask about.
    pub(super) fn of(items: &[BatchArg]) -> Result<Self, EstimateGraphFailure> {
        match items {
            [] => Ok(Self::Exported),
            [BatchArg::Range(range)] => Ok(Self::Range(*range)),
            several => {
                let one = |item: &BatchArg| match item {
                    BatchArg::One(size) => Ok(*size),
                    BatchArg::Range(_) => Err(EstimateGraphFailure::RangeInList),
                };
                several.iter().map(one).collect::<Result<_, _>>().map(Self::Listed)
            }
        }
    }

    /// The sizes that are asked about in any case.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Exported => 1,
            Self::Listed(sizes) => sizes.len(),
            Self::Range(range) => range.doublings().len(),
        }
    }
}

impl BatchRange {
    /// Sizes that double from the least one on, and the greatest.
    pub(super) fn doublings(self) -> Vec<NonZeroU32> {
        let next = |size: &NonZeroU32| size.checked_mul(const { NonZeroU32::new(2).unwrap() });
        let mut sizes: Vec<NonZeroU32> = std::iter::successors(Some(self.low), next)
            .take_while(|size| *size < self.high)
            .collect();
        sizes.push(self.high);
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(of: &[u32]) -> Vec<NonZeroU32> {
        of.iter().filter_map(|size| NonZeroU32::new(*size)).collect()
    }

    #[test]
    fn sizes_and_ranges_are_read() {
        let range = batch("3..20").expect("a range");
        let Batches::Range(range) = Batches::of(&[range]).expect("alone") else {
            panic!("a range")
        };
        assert_eq!(range.doublings(), sizes(&[3, 6, 12, 20]));
        let listed = ["8", "16"].map(|text| batch(text).expect("a size"));
        assert_eq!(Batches::of(&listed).expect("a list"), Batches::Listed(sizes(&[8, 16])));
        for wrong in ["0", "8..4", "..4", "1..", "a"] {
            batch(wrong).expect_err(wrong);
        }
        let mixed = ["8", "16..32"].map(|text| batch(text).expect("a size"));
        Batches::of(&mixed).expect_err("a range among sizes");
    }
}
