//! Damaged traces, replayed with one byte less than the intact ones need.

use crate::dice::Strength;
use crate::intact::{Needs, arguments};
use crate::judge::{self, Answer};
use crate::kinds::{self, Kind};
use crate::process::Runner;
use crate::recording::{self, Input, Recording};
use crate::report::{Report, Row};
use crate::{Options, forms, in_parallel};
use std::path::Path;
use xmem_task::Error;

/// One variant of a trace.
#[derive(Clone, Copy, Debug)]
struct Variant<'r> {
    recording: &'r Recording,
    other: &'r Recording,
    kind: &'static Kind,
    strength: Strength,
    /// One byte less than the intact trace needs.
    capacity: u64,
    forms: Forms,
}

/// Which forms of the answer are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forms {
    Json,
    All,
}

/// Damages, replays and judges.
pub(crate) fn run(
    program: &Path,
    options: &Options,
    needs: &Needs,
    report: &mut Report,
) -> Result<(), Error> {
    for input in [Input::HostTrace, Input::GpuTrace] {
        run_input(program, options, needs, report, input)?;
    }
    Ok(())
}

fn run_input(
    program: &Path,
    options: &Options,
    needs: &Needs,
    report: &mut Report,
    input: Input,
) -> Result<(), Error> {
    let (all, sampled) = match input {
        Input::GpuTrace => (&recording::OF_GPUS[..], &recording::SAMPLED_OF_GPUS[..]),
        _ => (&recording::DAMAGED[..], &recording::SAMPLED[..]),
    };
    let names = options.of_input(input, all, sampled);
    let recordings = names
        .iter()
        .map(|name| Recording::read(&recording::path(name), name))
        .collect::<Result<Vec<_>, Error>>()?;
    let variants = variants(options, &recordings, needs, input);
    let rows =
        in_parallel(&variants, |runner, variant| one(program, runner, variant, options.seed))?;
    report.add_damaged(rows);
    Ok(())
}

fn variants<'r>(
    options: &Options,
    recordings: &'r [Recording],
    needs: &Needs,
    input: Input,
) -> Vec<Variant<'r>> {
    let wanted = |kind: &&Kind| {
        options.kinds.is_empty() || options.kinds.iter().any(|name| name == kind.name)
    };
    let mut variants = Vec::new();
    for (place, recording) in recordings.iter().enumerate() {
        let other = &recordings[(place + 1) % recordings.len()];
        let capacity = needs.get(&recording.name).map_or(0, |need| need.saturating_sub(1));
        for (number, kind) in kinds::of(input).into_iter().filter(wanted).enumerate() {
            for strength in Strength::ALL {
                if options.runs(number, strength, place, recordings.len()) {
                    // All forms once for each kind and strength.
                    let turn = (number + strength.level()) % recordings.len() == place;
                    let forms = if turn { Forms::All } else { Forms::Json };
                    variants.push(Variant { recording, other, kind, strength, capacity, forms });
                }
            }
        }
    }
    variants
}

/// Judges one variant; none if there was nothing to damage.
fn one(
    program: &Path,
    runner: &Runner,
    variant: &Variant<'_>,
    seed: u64,
) -> Result<Option<Row>, Error> {
    let Variant { recording, other, kind, strength, capacity, forms } = *variant;
    let bytes = kind.apply(recording, other, seed, strength);
    if bytes == recording.variant().render() {
        return Ok(None);
    }
    let trace = runner.file("trace.json");
    std::fs::write(&trace, &bytes).map_err(Error::file(&trace))?;
    let ended = runner.run(program, &arguments(&trace, capacity), None)?;
    let answer = Answer::read(&ended.stdout);
    let mut findings = judge::misbehavior(&ended, bytes.len() as u64);
    findings.extend(judge::damaged(&ended, &answer, kind.leaves));
    if forms == Forms::All {
        findings.extend(forms::run(program, runner, &trace, capacity, &answer)?);
    }
    let level = strength.level().to_string();
    Ok(Some(Row::new(kind.name, &level, &recording.name, capacity, &ended, answer, findings)))
}
