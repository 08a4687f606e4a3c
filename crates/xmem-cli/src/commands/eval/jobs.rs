//! The jobs that are evaluated.

use super::args::EvalArgs;
use super::error::EvalFailure;
use super::matrix::{Combinations, DEVICE, Jobs, Matrix};
use super::readings::Reading;
use crate::error::CliError;
use xmem::Device;
use xmem_eval::evaluation::{Configuration, sample};

/// The most jobs without a sample.
const MAX_JOBS: u64 = 100_000;

/// A job to evaluate.
#[derive(Clone, Debug)]
pub(super) struct PlannedJob<'m> {
    pub(super) configuration: Configuration,
    pub(super) kind: &'m Jobs,
    pub(super) device: Device,
    /// The run that was measured, where there is one.
    pub(super) reading: Option<Reading>,
}

/// The jobs that were chosen of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan<'m> {
    pub(super) jobs: Vec<PlannedJob<'m>>,
    /// The number of all.
    pub(super) of: u64,
    /// Readings of which no job of the matrix is the kind.
    pub(super) unmatched: usize,
}

/// The jobs of a matrix that the arguments choose; of the readings, where there are some.
pub(super) fn plan<'m>(
    args: &EvalArgs,
    matrix: &'m Matrix,
    readings: Option<Vec<Reading>>,
) -> Result<Plan<'m>, CliError> {
    let plan = match readings {
        Some(readings) => of_readings(args, matrix, readings)?,
        None => of_grids(args, matrix)?,
    };
    if plan.jobs.is_empty() && !args.only.is_empty() {
        return Err(EvalFailure::NoneChosen { only: args.only.clone() }.into());
    }
    Ok(plan)
}

fn of_grids<'m>(args: &EvalArgs, matrix: &'m Matrix) -> Result<Plan<'m>, CliError> {
    let kinds: Vec<(&Jobs, Combinations)> =
        matrix.jobs.iter().filter_map(|jobs| Some((jobs, restricted(jobs, &args.only)?))).collect();
    let of = kinds.iter().map(|(_, all)| all.len()).fold(0, u64::saturating_add);
    let mut jobs = Vec::new();
    for number in chosen(args, of)? {
        let mut place = number;
        let (kind, all) = kinds
            .iter()
            .find(|(_, all)| {
                let is_here = place < all.len();
                if !is_here {
                    place -= all.len();
                }
                is_here
            })
            .expect("numbers are below the number of all jobs");
        jobs.push(planned(kind, all.get(place), None)?);
    }
    Ok(Plan { jobs, of, unmatched: 0 })
}

fn of_readings<'m>(
    args: &EvalArgs,
    matrix: &'m Matrix,
    readings: Vec<Reading>,
) -> Result<Plan<'m>, CliError> {
    let count = readings.len();
    let mut matched: Vec<(&Jobs, Reading)> = readings
        .into_iter()
        .filter_map(|reading| {
            let kind = matrix.jobs.iter().find(|jobs| jobs.has(&reading.configuration))?;
            Some((kind, reading))
        })
        .collect();
    let unmatched = count - matched.len();
    matched.retain(|(kind, reading)| {
        let completed = kind.completed(reading.configuration.clone());
        args.only.iter().all(|(factor, value)| completed.value(factor) == Some(value))
    });
    let of = matched.len() as u64;
    let mut matched: Vec<_> = matched.into_iter().map(Some).collect();
    let mut jobs = Vec::new();
    for number in chosen(args, of)? {
        let (kind, reading) = matched[number as usize].take().expect("each number is drawn once");
        let configuration = reading.configuration.clone();
        jobs.push(planned(kind, configuration, Some(reading))?);
    }
    Ok(Plan { jobs, of, unmatched })
}

/// The numbers of the chosen jobs.
fn chosen(args: &EvalArgs, of: u64) -> Result<Vec<u64>, EvalFailure> {
    match args.sample {
        Some(count) => Ok(sample(of, count.get(), args.seed)),
        None if of > MAX_JOBS => Err(EvalFailure::TooMany { count: of }),
        None => Ok((0..of).collect()),
    }
}

/// The combinations that have the values that are asked for; none if no job is left. What was drawn stays the same.
fn restricted(jobs: &Jobs, only: &[(String, String)]) -> Option<Combinations> {
    let mut combinations = jobs.combinations();
    for (factor, value) in only {
        match &mut combinations {
            Combinations::All(grid) => match grid.0.iter_mut().find(|(name, _)| name == factor) {
                Some((_, values)) => values.retain(|one| one == value),
                None => {
                    let fixed = jobs.completed(Configuration::default());
                    (fixed.value(factor) == Some(value)).then_some(())?;
                }
            },
            Combinations::Drawn(drawn) => drawn
                .retain(|one| jobs.completed(one.clone()).value(factor) == Some(value.as_str())),
        }
    }
    (combinations.len() > 0).then_some(combinations)
}

fn planned<'m>(
    kind: &'m Jobs,
    configuration: Configuration,
    reading: Option<Reading>,
) -> Result<PlannedJob<'m>, CliError> {
    let configuration = kind.completed(configuration);
    let device = configuration.value(DEVICE).unwrap_or_default();
    let mut device = xmem::find(device)?.clone();
    if let Some(capacity) = reading.as_ref().and_then(|reading| reading.capacity) {
        device.memory = capacity;
    }
    Ok(PlannedJob { configuration, kind, device, reading })
}
