//! What makes the job fit: the job as it is, measures, and the values of a number with what each needs.
//! `web/src/data/fit.ts` reads it.

use serde::Serialize;
use std::collections::BTreeMap;
use xmem::types::Nanos;
use xmem::{Bytes, Device};
use xmem_studies::fit::{FewestWith, Figures, FitAnswer, LargestWith, Tried};
use xmem_studies::law::{LawPoint, LawTable};

/// What makes the job of a run fit.
#[derive(Clone, Copy, Debug)]
pub struct PageFit<'a> {
    /// What was found.
    pub answer: &'a FitAnswer,
    /// Other devices, whose memory is drawn beside that of the answer's: those that matter most first.
    pub devices: &'a [&'a Device],
}

#[derive(Serialize)]
pub(super) struct FitHead<'a> {
    command: &'a str,
    device: DeviceDto<'a>,
    devices: Vec<DeviceDto<'a>>,
    option: Option<OptionDto<'a>>,
    base: FiguresDto,
    measures: Vec<MeasureDto<'a>>,
    /// Each measure alone, then those that were tried together.
    tried: Vec<TriedDto<'a>>,
    suggestion: Option<SuggestionDto<'a>>,
    /// The values that were recorded: of the job as it is, and with measures.
    values: Vec<ValuesDto<'a>>,
    law: Option<LawDto>,
    notes: &'a [String],
    recordings: usize,
}

#[derive(Serialize)]
struct DeviceDto<'a> {
    name: &'a str,
    memory_bytes: u64,
}

#[derive(Serialize)]
struct OptionDto<'a> {
    name: &'a str,
    /// The value in the job as it is.
    value: Option<u64>,
    /// Whether the fewest are looked for, as of processes; else the largest value.
    is_fewest: bool,
}

#[derive(Serialize)]
struct FiguresDto {
    needs_bytes: u64,
    fits: bool,
    has_room: bool,
    step_ns: Option<i64>,
}

#[derive(Serialize)]
struct MeasureDto<'a> {
    name: &'a str,
    title: &'a str,
    changes: &'a str,
    code: &'a str,
    places: Option<&'a str>,
}

/// Rows of the measures, and what their recording says.
#[derive(Serialize)]
struct TriedDto<'a> {
    measures: &'a [usize],
    figures: Option<FiguresDto>,
    failed: Option<&'a str>,
}

#[derive(Serialize)]
struct SuggestionDto<'a> {
    measures: &'a [usize],
    /// The command that runs it.
    run: String,
    /// Whether it ran in the memory of the device.
    runs: Option<bool>,
}

#[derive(Serialize)]
struct ValuesDto<'a> {
    measures: &'a [usize],
    points: Vec<PointDto>,
    /// Values that could not be recorded, and why.
    refused: Vec<(u64, &'a str)>,
    /// The largest value that fits, or the fewest.
    fits: Option<u64>,
    /// Whether the very next value does not fit, or is beyond the range.
    proven: bool,
}

#[derive(Serialize)]
struct PointDto {
    value: u64,
    #[serde(flatten)]
    figures: FiguresDto,
}

#[derive(Serialize)]
struct LawDto {
    /// Value, least memory that it needs, and the bounds of this figure.
    points: Vec<(u64, u64, u64, u64)>,
    /// The greatest share by which it was off about a recording that was left out.
    off: Option<f64>,
}

impl From<&Figures> for FiguresDto {
    fn from(of: &Figures) -> Self {
        Self {
            needs_bytes: of.needs.get(),
            fits: of.fits,
            has_room: of.has_room,
            step_ns: of.step.map(Nanos::get),
        }
    }
}

impl<'a> From<&'a Device> for DeviceDto<'a> {
    fn from(of: &'a Device) -> Self {
        Self { name: &of.name, memory_bytes: of.memory.get() }
    }
}

/// The data of the page.
pub(super) fn encode<'a>(page: &PageFit<'a>) -> FitHead<'a> {
    let PageFit { answer, devices } = page;
    let ladder = answer.ladder.as_ref();
    let tried = ladder.into_iter().flat_map(|ladder| ladder.single.iter().chain(&ladder.combined));
    let suggestion = ladder.and_then(|ladder| ladder.suggestion.as_ref());
    FitHead {
        command: &answer.command,
        device: DeviceDto { name: &answer.device.name, memory_bytes: answer.room.get() },
        devices: devices.iter().map(|&device| device.into()).collect(),
        option: answer.option.as_ref().map(|option| OptionDto {
            name: &option.name,
            value: option.value,
            is_fewest: !answer.fewest.is_empty(),
        }),
        base: (&answer.base).into(),
        measures: answer
            .measures
            .iter()
            .map(|measure| MeasureDto {
                name: &measure.name,
                title: &measure.title,
                changes: measure.changes,
                code: &measure.code,
                places: measure.places.as_deref(),
            })
            .collect(),
        tried: tried.map(self::tried).collect(),
        suggestion: suggestion
            .filter(|_| !answer.base.fits)
            .map(|tried| self::suggestion(answer, tried)),
        values: answer
            .largest
            .iter()
            .map(|with| values(answer, with))
            .chain(answer.fewest.iter().map(fewest))
            .collect(),
        law: answer.law.as_ref().map(law),
        notes: &answer.notes,
        recordings: answer.recordings,
    }
}

fn tried(of: &Tried) -> TriedDto<'_> {
    TriedDto {
        measures: &of.measures,
        figures: of.recorded.as_ref().ok().map(Into::into),
        failed: of.recorded.as_ref().err().map(String::as_str),
    }
}

fn suggestion<'a>(answer: &FitAnswer, tried: &'a Tried) -> SuggestionDto<'a> {
    SuggestionDto {
        measures: &tried.measures,
        run: answer.run_command(&tried.measures),
        runs: answer.proof.map(|proof| proof.runs),
    }
}

/// What was recorded with some measures: by the search, and without measures for the law, too.
fn values<'a>(answer: &FitAnswer, with: &'a LargestWith) -> ValuesDto<'a> {
    let found = &with.found;
    let law = answer.law.as_ref().filter(|_| with.measures.is_empty());
    let mut points: BTreeMap<u64, Figures> =
        law.map(|law| recorded(law, answer.room).collect()).unwrap_or_default();
    points.extend(&found.points);
    ValuesDto {
        measures: &with.measures,
        points: points
            .iter()
            .map(|(&value, figures)| PointDto { value, figures: figures.into() })
            .collect(),
        refused: found.refused.iter().map(|(&value, reason)| (value, reason.as_str())).collect(),
        fits: found.fits,
        proven: answer.option.as_ref().is_some_and(|option| found.is_proven(option.range)),
    }
}

/// What was recorded of other numbers of processes.
fn fewest(with: &FewestWith) -> ValuesDto<'_> {
    let found = &with.found;
    let point = |(&value, figures): (&u64, &Figures)| PointDto { value, figures: figures.into() };
    ValuesDto {
        measures: &with.measures,
        points: found.points.iter().map(point).collect(),
        refused: found.refused.iter().map(|(&value, reason)| (value, reason.as_str())).collect(),
        fits: found.fits,
        // By halves, as GPUs are in machines.
        proven: true,
    }
}

/// The recorded values of a law.
fn recorded(law: &LawTable, room: Bytes) -> impl Iterator<Item = (u64, Figures)> {
    let is_recorded = |point: &&LawPoint| law.recorded.binary_search(&point.value).is_ok();
    law.points.iter().filter(is_recorded).map(move |point| {
        let figures = Figures {
            needs: point.needs,
            fits: point.needs <= room,
            has_room: point.reserved + law.subject.context <= room,
            step: None,
        };
        (point.value, figures)
    })
}

fn law(of: &LawTable) -> LawDto {
    let need = |point: &LawPoint| {
        let (low, high) = of.at(point.value).map_or(point.range, |need| need.range);
        (point.value, point.needs.get(), low.get(), high.get())
    };
    LawDto { points: of.points.iter().map(need).collect(), off: of.worst().map(|(_, needs)| needs) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use expect_test::expect_file;
    use xmem::find;
    use xmem_studies::fit::{Fewest, Ladder, Largest, Measure, Proof, Range, VariedOption};
    use xmem_studies::law::{LawCheck, LawSubject, LawSummary};

    fn figures(needs: u64, (fits, has_room): (bool, bool), step: i64) -> Figures {
        Figures { needs: Bytes::mib(needs), fits, has_room, step: Some(Nanos(step * 1_000_000)) }
    }

    fn measure(name: &str, changes: &'static str) -> Measure {
        Measure {
            name: name.to_owned(),
            title: format!("Title of {name}"),
            changes,
            code: format!("code_of({name:?})"),
            gpus: None,
            places: (name != "fused").then(|| "12 blocks".to_owned()),
        }
    }

    fn point(value: u64, needs: u64, off: u64) -> LawPoint {
        let range = (Bytes::mib(needs - off), Bytes::mib(needs + off));
        let (needs, allocated) = (Bytes::mib(needs), Bytes::mib(needs - 500));
        LawPoint { value, allocated, reserved: allocated, needs, range }
    }

    /// An answer with each case of the page.
    pub(crate) fn answer() -> FitAnswer {
        let device = find("rtx3060-12g").expect("a known device").clone();
        let room = device.memory;
        let base = figures(18_000, (false, false), 100);
        let mut answer =
            FitAnswer::new("python train.py --batch-size 48".to_owned(), device, room, base);
        let range = Range { low: 1, high: 64 };
        answer.option =
            Some(VariedOption { name: "batch".to_owned(), value: Some(48), setting: None, range });
        answer.measures = vec![
            measure("checkpointing", "nothing"),
            measure("early-zero-grad", "nothing"),
            measure("fused", "rounding"),
            measure("bfloat16", "training"),
        ];
        let tried = |measures: &[usize], recorded| Tried { measures: measures.to_vec(), recorded };
        let suggestion = tried(&[0, 1], Ok(figures(11_000, (true, true), 117)));
        answer.ladder = Some(Ladder {
            base,
            single: vec![
                tried(&[0], Ok(figures(12_500, (false, false), 117))),
                tried(&[1], Ok(base)),
                tried(&[2], Err("not applicable: gradients are accumulated".to_owned())),
                tried(&[3], Ok(figures(11_600, (true, false), 80))),
            ],
            combined: vec![suggestion.clone()],
            suggestion: Some(suggestion),
        });
        answer.proof = Some(Proof { runs: true, less: Bytes::mib(2), fails_below: Some(true) });
        let largest = |points: &[(u64, Figures)], fits, fails| Largest {
            fits,
            fails,
            points: points.iter().copied().collect(),
            ..Largest::default()
        };
        let mut as_is = largest(
            &[
                (29, figures(11_500, (true, true), 60)),
                (30, figures(12_100, (false, false), 62)),
                (48, base),
            ],
            Some(29),
            Some(30),
        );
        as_is.refused.insert(64, "the script raised ValueError".to_owned());
        let with = largest(
            &[(48, figures(11_000, (true, true), 117)), (56, figures(12_900, (false, false), 130))],
            Some(48),
            Some(56),
        );
        answer.largest = vec![
            LargestWith { measures: Vec::new(), found: as_is },
            LargestWith { measures: vec![0, 1], found: with },
        ];
        let points = vec![
            point(1, 1_400, 0),
            point(16, 6_800, 250),
            point(29, 11_500, 0),
            point(30, 12_100, 0),
            point(40, 15_300, 600),
            point(48, 18_000, 0),
        ];
        let subject = LawSubject {
            name: "batch".to_owned(),
            context: Bytes::mib(500),
            ..LawSubject::default()
        };
        let check = LawCheck { recorded: points[1], predicted: point(16, 6_834, 0) };
        let recorded = vec![1, 29, 30, 48];
        answer.law = Some(LawTable::from_rows(
            subject,
            recorded,
            points,
            LawSummary::default(),
            vec![check],
        ));
        answer.notes = vec!["the script was not recorded to its end".to_owned()];
        answer.recordings = 12;
        answer
    }

    /// `UPDATE_EXPECT=1 cargo test -p xmem-view` writes what the tests of the page read.
    #[test]
    fn the_tests_of_the_page_have_the_data_that_is_written() {
        let answer = answer();
        let devices: Vec<&Device> = ["rtx3060-12g", "t4-16g", "rtx4090-24g"]
            .into_iter()
            .map(|name| find(name).expect("a known device"))
            .collect();
        let head = encode(&PageFit { answer: &answer, devices: &devices });
        let text = serde_json::to_string_pretty(&head).expect("JSON");
        expect_file!["../../../../web/tests/fit.json"].assert_eq(&(text + "\n"));
    }

    #[test]
    fn values_that_were_recorded_for_the_law_are_among_the_values() {
        let answer = answer();
        let of = |row: usize| {
            let points = values(&answer, &answer.largest[row]).points;
            points.iter().map(|point| point.value).collect::<Vec<_>>()
        };
        assert_eq!((of(0), of(1)), (vec![1, 29, 30, 48], vec![48, 56]));
        let least = &values(&answer, &answer.largest[0]).points[0].figures;
        assert!(least.fits && least.has_room && least.step_ns.is_none());
    }

    #[test]
    fn the_page_of_a_distributed_job_had_no_curve() {
        let mut answer = answer();
        let (does_not, fits) =
            (figures(16_000, (false, false), 100), figures(9_000, (true, true), 100));
        let found = Fewest {
            fits: Some(4),
            fails: Some(2),
            points: [(2, does_not), (4, fits)].into(),
            refused: [(1, "raised".to_owned())].into(),
        };
        answer.largest.clear();
        answer.fewest = vec![FewestWith { measures: Vec::new(), found }];
        let head = encode(&PageFit { answer: &answer, devices: &[] });
        assert!(head.option.as_ref().is_some_and(|option| option.is_fewest));
        let values = &head.values[0];
        assert_eq!((values.points.len(), values.fits, values.refused.len()), (2, Some(4), 1));
    }

    #[test]
    fn nothing_is_suggested_for_a_job_that_fits() {
        let mut answer = answer();
        let encoded =
            |answer: &FitAnswer| encode(&PageFit { answer, devices: &[] }).suggestion.is_some();
        assert!(encoded(&answer));
        answer.base.fits = true;
        assert!(!encoded(&answer));
    }
}
