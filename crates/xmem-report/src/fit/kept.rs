//! What `xmem fit` keeps with the recording of a job as it is: `xmem.measures.1`.

use serde::Serialize;
use std::num::NonZeroU32;
use xmem_studies::fit::{Figures, FitAnswer, Tried};

/// The most measures that are kept.
const MAX_KEPT: usize = 16;

/// What xmem fit found out about a job with changes, which it keeps with the recording of the job as it is (--keep): the value of
/// the top-level key xmem_measures of a trace. Readers ignore unknown keys.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = true)))]
pub struct MeasuresDocument<'a> {
    schema: &'static str,
    /// The device that the job was recorded for.
    device: &'a str,
    /// Measures with which the job needs less, as they were recorded: what is suggested, what else fits by the time of a step,
    /// and then what does not fit.
    measures: Vec<KeptDto>,
    /// The largest value of the number in the command with which the job fits as it is; null without one.
    largest: Option<KeptValueDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = true)))]
struct KeptDto {
    /// The names, as xmem run --with takes them (fused,checkpointing=2).
    names: String,
    /// The GPUs that the job is divided over.
    gpus: u32,
    /// The least device memory with which the job runs.
    needs_bytes: u64,
    /// The time of a step by the model of durations, in percent of that of the job as it is; null if it is not known.
    step_percent: Option<u32>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = true)))]
struct KeptValueDto<'a> {
    /// The name of the number.
    name: &'a str,
    /// Its value.
    value: u64,
    /// The least device memory with which the job runs with it.
    needs_bytes: u64,
}

impl<'a> MeasuresDocument<'a> {
    /// The document of an answer; none if nothing was found that needs less than the job as it is.
    #[must_use]
    pub fn new(answer: &'a FitAnswer) -> Option<Self> {
        let ladder = answer.ladder.as_ref();
        let over = answer.over_gpus.as_ref().map_or(&[][..], |over| &over.tried);
        let tried =
            ladder.into_iter().flat_map(|ladder| ladder.single.iter().chain(&ladder.combined));
        let known = |tried: &'a Tried| Some((tried, tried.recorded.as_ref().ok()?));
        let mut known: Vec<(&Tried, &Figures)> = tried
            .chain(over)
            .filter_map(known)
            .filter(|(_, figures)| figures.needs < answer.base.needs)
            .collect();
        let suggestion = answer.suggestion();
        known.sort_by_key(|(tried, figures)| {
            let is_other = suggestion.is_none_or(|one| one.measures != tried.measures);
            (is_other, !figures.fits, percent(answer, figures).unwrap_or(u32::MAX), figures.needs)
        });
        let measures = known.iter().take(MAX_KEPT).map(|(tried, figures)| KeptDto {
            names: answer.names(&tried.measures),
            gpus: answer.gpus(&tried.measures).map_or(1, NonZeroU32::get),
            needs_bytes: figures.needs.get(),
            step_percent: percent(answer, figures),
        });
        let measures: Vec<KeptDto> = measures.collect();
        let largest = largest(answer);
        let is_empty = measures.is_empty() && largest.is_none();
        let device = answer.device.name.as_str();
        (!is_empty).then_some(Self { schema: "xmem.measures.1", device, measures, largest })
    }
}

fn largest(answer: &FitAnswer) -> Option<KeptValueDto<'_>> {
    let option = answer.option.as_ref()?;
    let found = &answer.largest.iter().find(|with| with.measures.is_empty())?.found;
    let value = found.fits?;
    let needs_bytes = found.points.get(&value)?.needs.get();
    Some(KeptValueDto { name: &option.name, value, needs_bytes })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a factor of time is small"
)]
fn percent(answer: &FitAnswer, figures: &Figures) -> Option<u32> {
    figures.time_against(&answer.base).map(|factor| (factor * 100.0).round() as u32)
}
