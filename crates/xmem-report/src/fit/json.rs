//! `xmem.fit/1`.

use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use xmem_studies::fit::{FewestWith, Figures, FitAnswer, LargestWith, Recorded, Tried};

/// What makes a job fit on a device. Every figure is of a recording of the changed job.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FitDocument<'a> {
    schema: &'static str,
    /// The command as it is.
    command: &'a str,
    /// The device.
    device: &'a str,
    /// The memory of the device.
    device_memory_bytes: u64,
    /// The number in the command that may be changed; null if there is none.
    option: Option<OptionDto<'a>>,
    /// The least device memory with which the job runs as it is.
    needs_bytes: u64,
    /// Whether it fits as it is.
    fits: bool,
    /// The largest value with which the job fits as it is; null without a number in the command, or if none fits.
    largest: Option<LargestDto<'a>>,
    /// The same with measures.
    largest_with: Vec<LargestWithDto<'a>>,
    /// The fewest processes with which the job fits as it is, where their number is varied (`--ranks`).
    fewest: Option<FewestDto<'a>>,
    /// The same with measures.
    fewest_with: Vec<FewestWithDto<'a>>,
    /// What each value that was recorded needs, without measures.
    curve: Vec<PointDto>,
    /// Each measure alone, in the order in which they were tried.
    measures: Vec<MeasureDto<'a>>,
    /// Measures that were tried together.
    combinations: Vec<CombinationDto<'a>>,
    /// The job divided over several GPUs, each with the batch of the script, where no measure makes it fit on one; in the order
    /// in which that was tried.
    over_gpus: Vec<OverGpusDto<'a>>,
    /// What makes the job fit, the least costly in time first; empty where it fits as it is, or where nothing does.
    suggestions: Vec<SuggestionDto<'a>>,
    /// What to know about the figures.
    notes: &'a [String],
    /// The recordings that were made.
    recordings: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OptionDto<'a> {
    /// Its name.
    name: &'a str,
    /// Its value in the job as it is; null if the command does not say.
    value: Option<u64>,
    /// The least value that is allowed.
    low: u64,
    /// The greatest one.
    high: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LargestDto<'a> {
    /// The value, by the name of the number (`batch`).
    #[serde(flatten)]
    value: BTreeMap<&'a str, u64>,
    /// What it needs.
    needs_bytes: u64,
    /// The next value that was recorded, which does not fit; null if there is none.
    next: Option<u64>,
    /// What that one needs.
    next_needs_bytes: Option<u64>,
    /// Whether the very next value does not fit, or is beyond the range.
    proven: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LargestWithDto<'a> {
    /// The measures.
    measures: Vec<&'a str>,
    /// The value.
    #[serde(flatten)]
    largest: LargestDto<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FewestDto<'a> {
    /// The number of processes, by its name.
    #[serde(flatten)]
    value: BTreeMap<&'a str, u64>,
    /// What each of them needs.
    needs_bytes: u64,
    /// The next fewer that were recorded, which do not fit; null if there are none.
    fewer: Option<u64>,
    /// What each of those needs.
    fewer_needs_bytes: Option<u64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FewestWithDto<'a> {
    /// The measures.
    measures: Vec<&'a str>,
    /// The number.
    #[serde(flatten)]
    fewest: FewestDto<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PointDto {
    /// The value.
    value: u64,
    /// What it needs.
    needs_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MeasureDto<'a> {
    /// The name, as `xmem run --with` takes it.
    name: &'a str,
    /// What it does.
    title: &'a str,
    /// What it changes in the numbers that the job computes.
    #[cfg_attr(test, schemars(extend("enum" = ["nothing", "rounding", "training"])))]
    changes: &'a str,
    /// The code that a person would write.
    code: &'a str,
    /// Where it was applied, in words; null if it was not.
    places: Option<&'a str>,
    /// What its recording says.
    #[serde(flatten)]
    recorded: RecordedDto<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CombinationDto<'a> {
    /// The measures.
    measures: Vec<&'a str>,
    /// What their recording says.
    #[serde(flatten)]
    recorded: RecordedDto<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OverGpusDto<'a> {
    /// The GPUs, each with a separate process.
    gpus: u32,
    /// The measures.
    measures: Vec<&'a str>,
    /// What the recording of one of the processes says.
    #[serde(flatten)]
    recorded: RecordedDto<'a>,
}

// What a recording says.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RecordedDto<'a> {
    /// What the job then needs; null if it could not be recorded.
    needs_bytes: Option<u64>,
    /// Whether it fits.
    fits: Option<bool>,
    /// Whether it fits without releasing cached memory.
    has_room: Option<bool>,
    /// The time of a step against that of the job as it is, as a factor, by a model; null where it is not known.
    #[cfg_attr(test, schemars(range(min = 0)))]
    step_time: Option<f64>,
    /// Why it could not be recorded.
    failed: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SuggestionDto<'a> {
    /// The measures.
    measures: Vec<&'a str>,
    /// The GPUs that the job is divided over; 1 if it is not.
    gpus: u32,
    /// The command that runs the job so.
    run: String,
    /// What the job needs with them, on each GPU.
    needs_bytes: u64,
    /// The time of a step, as for a measure.
    #[cfg_attr(test, schemars(range(min = 0)))]
    step_time: Option<f64>,
    /// Whether it ran in the memory of the device; null if that was not recorded.
    runs: Option<bool>,
    /// Whether it ran out of memory with a little less than it needs; null if that was not recorded.
    fails_below: Option<bool>,
}

impl<'a> FitDocument<'a> {
    /// The document of an answer.
    #[must_use]
    pub fn new(answer: &'a FitAnswer) -> Self {
        let without = |with: &&LargestWith| with.measures.is_empty();
        let ladder = answer.ladder.as_ref();
        let single = ladder.map_or(&[][..], |ladder| &ladder.single);
        let combined = ladder.map_or(&[][..], |ladder| &ladder.combined);
        let over = answer.over_gpus.as_ref().map_or(&[][..], |over| &over.tried);
        let suggestion = answer.suggestion();
        Self {
            schema: "xmem.fit/1",
            command: &answer.command,
            device: &answer.device.name,
            device_memory_bytes: answer.room.get(),
            option: answer.option.as_ref().map(|option| OptionDto {
                name: &option.name,
                value: option.value,
                low: option.range.low,
                high: option.range.high,
            }),
            needs_bytes: answer.base.needs.get(),
            fits: answer.base.fits,
            largest: answer.largest.iter().find(without).and_then(|with| largest(answer, with)),
            largest_with: answer
                .largest
                .iter()
                .filter(|with| !with.measures.is_empty())
                .filter_map(|with| {
                    let measures = names(answer, &with.measures);
                    Some(LargestWithDto { measures, largest: largest(answer, with)? })
                })
                .collect(),
            fewest: answer
                .fewest
                .iter()
                .find(|with| with.measures.is_empty())
                .and_then(|with| fewest(answer, with)),
            fewest_with: answer
                .fewest
                .iter()
                .filter(|with| !with.measures.is_empty())
                .filter_map(|with| {
                    let measures = names(answer, &with.measures);
                    Some(FewestWithDto { measures, fewest: fewest(answer, with)? })
                })
                .collect(),
            curve: answer
                .curve()
                .into_iter()
                .map(|(value, needs)| PointDto { value, needs_bytes: needs.get() })
                .collect(),
            measures: single.iter().map(|tried| measure(answer, tried)).collect(),
            combinations: combined.iter().map(|tried| combination(answer, tried)).collect(),
            over_gpus: over.iter().map(|tried| over_gpus(answer, tried)).collect(),
            suggestions: suggestion
                .and_then(|tried| suggested(answer, tried))
                .into_iter()
                .collect(),
            notes: &answer.notes,
            recordings: answer.recordings,
        }
    }
}

fn names<'a>(answer: &'a FitAnswer, measures: &[usize]) -> Vec<&'a str> {
    measures.iter().map(|&at| answer.measures[at].name.as_str()).collect()
}

fn largest<'a>(answer: &'a FitAnswer, with: &LargestWith) -> Option<LargestDto<'a>> {
    let (option, found) = (answer.option.as_ref()?, &with.found);
    let value = found.fits?;
    let needs = |value: u64| found.points.get(&value).map(|figures| figures.needs.get());
    Some(LargestDto {
        value: [(option.name.as_str(), value)].into(),
        needs_bytes: needs(value)?,
        next: found.fails,
        next_needs_bytes: found.fails.and_then(needs),
        proven: found.is_proven(option.range),
    })
}

fn fewest<'a>(answer: &'a FitAnswer, with: &FewestWith) -> Option<FewestDto<'a>> {
    let (option, found) = (answer.option.as_ref()?, &with.found);
    let value = found.fits?;
    let needs = |value: u64| found.points.get(&value).map(|figures| figures.needs.get());
    Some(FewestDto {
        value: [(option.name.as_str(), value)].into(),
        needs_bytes: needs(value)?,
        fewer: found.fails,
        fewer_needs_bytes: found.fails.and_then(needs),
    })
}

fn measure<'a>(answer: &'a FitAnswer, tried: &'a Tried) -> MeasureDto<'a> {
    let measure = &answer.measures[tried.measures[0]];
    MeasureDto {
        name: &measure.name,
        title: &measure.title,
        changes: measure.changes,
        code: &measure.code,
        places: measure.places.as_deref(),
        recorded: recorded(answer, &tried.recorded),
    }
}

fn combination<'a>(answer: &'a FitAnswer, tried: &'a Tried) -> CombinationDto<'a> {
    let measures = names(answer, &tried.measures);
    CombinationDto { measures, recorded: recorded(answer, &tried.recorded) }
}

fn over_gpus<'a>(answer: &'a FitAnswer, tried: &'a Tried) -> OverGpusDto<'a> {
    OverGpusDto {
        gpus: gpus(answer, &tried.measures),
        measures: names(answer, &tried.measures),
        recorded: recorded(answer, &tried.recorded),
    }
}

fn gpus(answer: &FitAnswer, measures: &[usize]) -> u32 {
    answer.gpus(measures).map_or(1, NonZeroU32::get)
}

fn suggested<'a>(answer: &'a FitAnswer, tried: &'a Tried) -> Option<SuggestionDto<'a>> {
    let figures = tried.recorded.as_ref().ok()?;
    Some(SuggestionDto {
        measures: names(answer, &tried.measures),
        gpus: gpus(answer, &tried.measures),
        run: answer.run_command(&tried.measures),
        needs_bytes: figures.needs.get(),
        step_time: factor(answer, figures),
        runs: answer.proof.map(|proof| proof.runs),
        fails_below: answer.proof.and_then(|proof| proof.fails_below),
    })
}

fn recorded<'a>(answer: &FitAnswer, recorded: &'a Recorded) -> RecordedDto<'a> {
    let figures = recorded.as_ref().ok();
    RecordedDto {
        needs_bytes: figures.map(|figures| figures.needs.get()),
        fits: figures.map(|figures| figures.fits),
        has_room: figures.map(|figures| figures.has_room),
        step_time: figures.and_then(|figures| factor(answer, figures)),
        failed: recorded.as_ref().err().map(String::as_str),
    }
}

/// Three decimals: the model is no better.
fn factor(answer: &FitAnswer, figures: &Figures) -> Option<f64> {
    figures.time_against(&answer.base).map(|factor| (factor * 1000.0).round() / 1000.0)
}
