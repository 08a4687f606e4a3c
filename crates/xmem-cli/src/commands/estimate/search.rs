//! The largest batch size of a range that fits.

use super::batches::BatchRange;
use super::question::Answered;
use crate::error::CliError;
use rayon::prelude::*;
use std::num::NonZeroU32;
use xmem::Verdict;

/// Asks about sizes that double, then between the last one that fits and the next one. Returns the answers by size,
/// ascending, and the largest size that fits.
pub(super) fn largest(
    range: BatchRange,
    ask: impl Fn(NonZeroU32) -> Result<Answered, CliError> + Sync,
) -> Result<(Vec<Answered>, Option<NonZeroU32>), CliError> {
    let asked = range.doublings().into_par_iter().map(&ask).collect::<Result<Vec<_>, _>>()?;
    let mut answers = asked;
    loop {
        let fits = |answered: &&Answered| answered.answer.verdict == Verdict::Fits;
        let Some(last) = answers.iter().rposition(|answered| fits(&answered)) else {
            return Ok((answers, None));
        };
        let size = |at: usize| answers.get(at).and_then(|answered| answered.batch);
        let (Some(low), high) = (size(last), size(last + 1)) else {
            return Ok((answers, None));
        };
        let middle = high.map(|high| low.get() + (high.get() - low.get()) / 2);
        match middle.and_then(NonZeroU32::new).filter(|middle| *middle > low) {
            Some(middle) => answers.insert(last + 1, ask(middle)?),
            None => return Ok((answers, Some(low))),
        }
    }
}
