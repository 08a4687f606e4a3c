//! Iterations of other lengths: a recorded job goes on with batches whose sequences, or whose number of
//! samples, vary, in a random order.
//!
//! PyTorch's allocator serves a request from a cached block of the right size. A batch that is a little
//! longer than those before needs blocks that are a little larger than the cached ones, so that the peak of
//! reserved memory depends on the order of the lengths. A [`LengthModel`] has the steps of an iteration
//! (`pattern`), which all lengths share, and the size of each block as a function of the length ([`SizeLaw`]),
//! fitted to iterations of two recorded lengths or more whose blocks were matched by operator, module and
//! line ([`RecordedIterations::counterparts`]). Sizes are those of the schedule, after the lowering: what a rule says about a length was
//! said about the recorded ones, and between them sizes are products of extents.
//!
//! Memory from before the first iteration, and what the first iteration leaves (optimizer state,
//! workspaces), is as recorded.

mod error;
mod observed;
mod orders;
mod pattern;
mod run;
mod sequence;
mod settings;
mod steady;

pub use error::LengthsError;
pub use run::{GrowthPoint, LengthRun, OrderPeaks, Quantiles};
pub use settings::{Dimension, ExtentsError, LengthSettings, VaryingDimension};
pub use steady::{STEADY_ITERATIONS, SteadyRun};

use crate::prediction::Prediction;
use crate::size_law::{Closeness, LawKind, SizeLaw};
use observed::BatchShape;
use pattern::{Pattern, SimulationStep};
use std::collections::{BTreeMap, BTreeSet};
use xmem_orchestrator::{RecordedIterations, Schedule};
use xmem_types::{BlockId, Bytes, Diagnostics, Request, RequestKind, Severity};

/// A job whose iterations can have any length.
#[derive(Debug)]
pub struct LengthModel<'p> {
    prediction: &'p Prediction<'p>,
    dimension: Dimension,
    /// Per recorded iteration, its length, if its shapes show it.
    lengths: Vec<Option<u64>>,
    pattern: Pattern,
    /// By slot of the pattern: the recorded block.
    reference: Vec<BlockId>,
    /// By slot of the pattern.
    laws: Vec<SizeLaw>,
    /// By slot of the pattern: the recorded lengths at which there is such a block.
    seen: Vec<BTreeSet<u64>>,
    /// The requests before the second iteration.
    first: &'p [Request],
    /// Per block of the first iteration: its slot.
    first_slots: BTreeMap<BlockId, usize>,
    /// Blocks from before the second iteration that a later one frees.
    freed_later: Vec<(BlockId, Option<usize>)>,
    fit: FitSummary,
    diagnostics: Diagnostics,
}

/// How the sizes of a [`LengthModel`] follow from the length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FitSummary {
    /// Lengths of recorded iterations that sizes were fitted to, ascending.
    pub lengths: Vec<u64>,
    /// Blocks that an iteration allocates.
    pub blocks: usize,
    /// Blocks of the same size at all lengths.
    pub constant: usize,
    /// Blocks whose size is an affine function of the length.
    pub affine: usize,
    /// Blocks whose size grows with the square of the length.
    pub square: usize,
    /// Blocks whose sizes between recorded lengths lie on straight lines.
    pub interpolated: usize,
    /// Blocks that iterations of other lengths do not have; lengths that are nearest to their own have them,
    /// with the same size.
    pub unmatched: usize,
    /// Their bytes.
    pub unmatched_bytes: Bytes,
}

impl Prediction<'_> {
    /// The job with iterations of any length along a dimension, fitted to the recorded iterations.
    ///
    /// # Errors
    /// If the recording does not have iterations of two lengths, or too few, or none that shows its length.
    pub fn length_model(&self, dimension: Dimension) -> Result<LengthModel<'_>, LengthsError> {
        LengthModel::fit(self, dimension)
    }

    /// The length that all recorded iterations of a language model have; none where lengths vary, or a
    /// single iteration was recorded, or the model does not begin with tokens.
    #[must_use]
    pub fn single_length(&self) -> Option<u64> {
        let batches = observed::batches(self.locator.profile);
        let lengths: Option<Vec<u64>> = batches
            .iter()
            .map(|batch| {
                batch.as_ref().filter(|batch| batch.is_text())?.extent(Dimension::Sequence)
            })
            .collect();
        let lengths = lengths?;
        let (first, others) = lengths.split_first()?;
        (!others.is_empty() && others.iter().all(|other| other == first)).then_some(*first)
    }
}

impl<'p> LengthModel<'p> {
    fn fit(prediction: &'p Prediction<'p>, dimension: Dimension) -> Result<Self, LengthsError> {
        let profile = prediction.locator.profile;
        let mut diagnostics = Diagnostics::default();
        let lengths = comparable(dimension, &observed::batches(profile), &mut diagnostics);
        check(dimension, &lengths)?;
        Self::of(prediction, dimension, lengths, diagnostics)
    }

    /// The model of iterations that have these lengths.
    fn of(
        prediction: &'p Prediction<'p>,
        dimension: Dimension,
        lengths: Vec<Option<u64>>,
        mut diagnostics: Diagnostics,
    ) -> Result<Self, LengthsError> {
        let profile = prediction.locator.profile;
        let starts = prediction.iteration_starts();
        let iterations = RecordedIterations::new(profile, &prediction.schedule, starts);
        let reference = iterations.fullest();
        let are_alike = lengths.iter().all(|length| length.is_some() && *length == lengths[0]);
        let counterparts_of = |iteration| match are_alike {
            true => iterations.counterparts_by_size(iteration, reference),
            false => iterations.counterparts(iteration, reference),
        };
        let counterparts: Vec<_> = (0..iterations.count()).map(counterparts_of).collect();
        check_matches(counterparts.get(reference + 1).unwrap_or(&counterparts[0]))?;
        let pattern = Pattern::of(&iterations, reference, &counterparts)?;
        let observed = observations(&iterations, &counterparts, &lengths, pattern.slots);
        let kept = iterations.blocks[reference].iter().map(|&b| prediction.schedule.block(b).size);
        let known: BTreeSet<u64> = lengths.iter().flatten().copied().collect();
        let own = lengths[reference].unwrap_or_default();
        let laws: Vec<SizeLaw> = observed
            .iter()
            .zip(kept)
            .map(|(seen, size)| {
                let own = [(own, size)];
                let seen = if seen.is_empty() { own.as_slice() } else { seen.as_slice() };
                SizeLaw::fit(seen, Closeness::ROUNDED)
            })
            .collect();
        let seen = observed.iter().map(|seen| seen.iter().map(|(length, _)| *length).collect());
        let seen: Vec<BTreeSet<u64>> = seen.collect();
        let fit = summary(&laws, &observed, known);
        let first_end = iterations.requests[1].start;
        let first_slots: BTreeMap<BlockId, usize> = iterations.blocks[0]
            .iter()
            .zip(&counterparts[0])
            .filter_map(|(&block, slot)| Some((block, (*slot)?)))
            .collect();
        let freed_later = freed_later(&iterations, &first_slots);
        report_unmatched(&fit, &mut diagnostics);
        report_trials(&prediction.schedule, &mut diagnostics);
        Ok(Self {
            prediction,
            dimension,
            lengths,
            pattern,
            reference: iterations.blocks[reference].clone(),
            laws,
            seen,
            first: &prediction.requests()[..first_end],
            first_slots,
            freed_later,
            fit,
            diagnostics,
        })
    }

    /// The dimension that varies.
    #[must_use]
    pub fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// Per recorded iteration, its length; none where its shapes do not show it, or where it differs from
    /// the others in something else.
    #[must_use]
    pub fn recorded_lengths(&self) -> &[Option<u64>] {
        &self.lengths
    }

    /// How sizes follow from the length.
    #[must_use]
    pub fn summary(&self) -> &FitSummary {
        &self.fit
    }

    /// The oddities of the fit.
    #[must_use]
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    fn schedule(&self) -> &'p Schedule {
        &self.prediction.schedule
    }

    fn slot_of_first(&self, block: BlockId) -> Option<usize> {
        self.first_slots.get(&block).copied()
    }

    /// Per slot, whether an iteration of this length has such a block: as the recorded one of the nearest length,
    /// and of two, as the longer one.
    fn presence(&self, length: u64) -> Vec<bool> {
        let nearest = self.fit.lengths.iter().rev().min_by_key(|known| known.abs_diff(length));
        let has =
            |seen: &BTreeSet<u64>| seen.is_empty() || nearest.is_none_or(|l| seen.contains(l));
        self.seen.iter().map(has).collect()
    }

    /// Returns whether the pattern frees a block only after the iteration that follows.
    fn is_freed_after_next(&self, slot: usize) -> bool {
        self.pattern.steps.iter().any(
            |step| matches!(step, SimulationStep::Free(held) if held.slot == slot && held.age > 1),
        )
    }
}

/// The lengths of the iterations whose other dimension is that of most.
fn comparable(
    dimension: Dimension,
    batches: &[Option<BatchShape>],
    notes: &mut Diagnostics,
) -> Vec<Option<u64>> {
    let other = |batch: &BatchShape| batch.extent(dimension.other());
    let mut counts: BTreeMap<Option<u64>, usize> = BTreeMap::new();
    for batch in batches.iter().flatten() {
        *counts.entry(other(batch)).or_default() += 1;
    }
    let usual = counts.iter().max_by_key(|(_, count)| **count).map(|(extent, _)| *extent);
    let lengths = batches.iter().map(|batch| {
        let batch = batch.as_ref()?;
        let is_usual = Some(other(batch)) == usual;
        if !is_usual {
            notes.report("lengths-other-dimension", Severity::Note, None, || {
                format!(
                    "iterations that also differ in {} are not fitted to; sizes are for {} {}",
                    dimension.other().words(),
                    dimension.other().words(),
                    usual.flatten().unwrap_or_default(),
                )
            });
        }
        batch.extent(dimension).filter(|_| is_usual)
    });
    lengths.collect()
}

/// Checks that there is something to fit to.
fn check(dimension: Dimension, lengths: &[Option<u64>]) -> Result<(), LengthsError> {
    let iterations = lengths.len();
    let known: BTreeSet<u64> = lengths.iter().flatten().copied().collect();
    let mut known = known.into_iter();
    match (known.next(), known.next()) {
        (None, _) => Err(LengthsError::Unknown { dimension }),
        (Some(length), None) => Err(LengthsError::OneLength { dimension, length, iterations }),
        _ if iterations < 3 => Err(LengthsError::TooFewIterations { iterations }),
        _ => Ok(()),
    }
}

/// Checks that two iterations are the same program.
fn check_matches(counterparts: &[Option<usize>]) -> Result<(), LengthsError> {
    let matched = counterparts.iter().flatten().count();
    let all = counterparts.len();
    if matched * 2 >= all && all > 0 {
        Ok(())
    } else {
        Err(LengthsError::TooDifferent { matched, all })
    }
}

/// Per slot: the sizes of its counterparts by length.
fn observations(
    iterations: &RecordedIterations<'_>,
    counterparts: &[Vec<Option<usize>>],
    lengths: &[Option<u64>],
    slots: usize,
) -> Vec<Vec<(u64, Bytes)>> {
    let mut observed = vec![Vec::new(); slots];
    for ((blocks, counterparts), length) in iterations.blocks.iter().zip(counterparts).zip(lengths)
    {
        let Some(length) = *length else { continue };
        for (&block, slot) in blocks.iter().zip(counterparts) {
            if let Some(slot) = *slot {
                observed[slot].push((length, iterations.schedule.block(block).size));
            }
        }
    }
    observed
}

/// Blocks of the first iteration, or from before it, that a later one frees.
fn freed_later(
    iterations: &RecordedIterations<'_>,
    slots: &BTreeMap<BlockId, usize>,
) -> Vec<(BlockId, Option<usize>)> {
    let (second, last) = (&iterations.requests[1], &iterations.requests[iterations.count() - 1]);
    let is_early = |block: BlockId| match iterations.owner(block) {
        None => true,
        Some(owner) => owner.iteration == 0,
    };
    let freed = iterations.schedule.requests[second.start..last.end]
        .iter()
        .filter(|request| request.kind == RequestKind::Free && is_early(request.block));
    freed.map(|request| (request.block, slots.get(&request.block).copied())).collect()
}

fn summary(laws: &[SizeLaw], observed: &[Vec<(u64, Bytes)>], known: BTreeSet<u64>) -> FitSummary {
    let mut fit = FitSummary { blocks: laws.len(), ..FitSummary::default() };
    for (law, seen) in laws.iter().zip(observed) {
        let lengths: BTreeSet<u64> = seen.iter().map(|(length, _)| *length).collect();
        if lengths.len() < 2 {
            fit.unmatched += 1;
            fit.unmatched_bytes += law.size(lengths.first().copied().unwrap_or_default());
            continue;
        }
        match law.kind() {
            LawKind::Constant => fit.constant += 1,
            LawKind::Affine | LawKind::Padded(_) => fit.affine += 1,
            LawKind::Square | LawKind::Quadratic(_) => fit.square += 1,
            LawKind::Interpolated => fit.interpolated += 1,
        }
    }
    fit.lengths = known.into_iter().collect();
    fit
}

fn report_unmatched(fit: &FitSummary, notes: &mut Diagnostics) {
    if fit.unmatched_bytes >= Bytes::mib(1) {
        notes.report("lengths-unmatched", Severity::Warning, None, || {
            format!(
                "{} of {} blocks of an iteration ({}) have no counterpart in iterations of other lengths; \
                 lengths that are nearest to their own are taken to have them",
                fit.unmatched, fit.blocks, fit.unmatched_bytes
            )
        });
    }
}

fn report_trials(schedule: &Schedule, notes: &mut Diagnostics) {
    if !schedule.fallbacks.is_empty() {
        notes.report("lengths-convolutions", Severity::Warning, None, || {
            "workspaces of convolutions are taken to lie between those of the recorded lengths; cuDNN may \
             choose other plans for lengths that were not recorded"
                .into()
        });
    }
}
