//! The largest batch size of a range that fits.

use super::batches::BatchRange;
use super::question::Answered;
use crate::error::CliError;
use rayon::prelude::*;
use std::num::NonZeroU32;
use xmem::Verdict;
use xmem_studies::law::LawTable;

/// A range of which the largest size that fits was looked for.
pub(super) struct Searched {
    /// By size, ascending.
    pub(super) answers: Vec<Answered>,
    /// The largest size that fits.
    pub(super) largest: Option<NonZeroU32>,
    /// Sizes below it that are known not to fit.
    pub(super) gaps: Vec<NonZeroU32>,
}

impl Searched {
    fn new(answers: Vec<Answered>, largest: Option<NonZeroU32>) -> Self {
        let below = answers.iter().filter(|answered| answered.batch < largest);
        let fails = below.filter(|answered| answered.answer.verdict == Verdict::DoesNotFit);
        let gaps = fails.filter_map(|answered| answered.batch).collect();
        Self { answers, largest, gaps }
    }
}

/// Asks about sizes that double, and about the largest size that fits by the law of the range, with the next one.
pub(super) fn by_law(
    range: BatchRange,
    law: &LawTable,
    ask: impl Fn(NonZeroU32) -> Result<Answered, CliError> + Sync,
) -> Result<Searched, CliError> {
    let fits = |at: &usize| law.points[*at].needs <= law.subject.memory;
    let size = |at: usize| {
        let value = law.points.get(at)?.value;
        NonZeroU32::new(u32::try_from(value).ok()?)
    };
    let last = (0..law.points.len()).rev().find(fits);
    let around = last.into_iter().flat_map(|last| [size(last), size(last + 1)]).flatten();
    let mut sizes: Vec<NonZeroU32> = range.doublings().into_iter().chain(around).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let answers = sizes.into_par_iter().map(&ask).collect::<Result<Vec<_>, _>>()?;
    let largest = last_that_fits(&answers).and_then(|at| answers[at].batch);
    let gaps = (0..last.unwrap_or(0)).filter(|at| !fits(at)).filter_map(size);
    Ok(Searched { gaps: gaps.collect(), ..Searched::new(answers, largest) })
}

fn last_that_fits(answers: &[Answered]) -> Option<usize> {
    answers.iter().rposition(|answered| answered.answer.verdict == Verdict::Fits)
}

/// Asks about sizes that double, then between the last one that fits and the next one.
pub(super) fn largest(
    range: BatchRange,
    ask: impl Fn(NonZeroU32) -> Result<Answered, CliError> + Sync,
) -> Result<Searched, CliError> {
    let asked = range.doublings().into_par_iter().map(&ask).collect::<Result<Vec<_>, _>>()?;
    let mut answers = asked;
    loop {
        let Some(last) = last_that_fits(&answers) else {
            return Ok(Searched::new(answers, None));
        };
        let size = |at: usize| answers.get(at).and_then(|answered| answered.batch);
        let (Some(low), high) = (size(last), size(last + 1)) else {
            return Ok(Searched::new(answers, None));
        };
        let middle = high.map(|high| low.get() + (high.get() - low.get()) / 2);
        match middle.and_then(NonZeroU32::new).filter(|middle| *middle > low) {
            Some(middle) => answers.insert(last + 1, ask(middle)?),
            None => return Ok(Searched::new(answers, Some(low))),
        }
    }
}
