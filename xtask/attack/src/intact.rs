//! Recorded traces as they are: each must get a verdict, fit where it is said to fit, and not below that.

use crate::judge::{self, Answer, Finding, Outcome};
use crate::process::{Ended, Runner};
use crate::recording::{self, Input, Recording};
use crate::report::{Report, Row};
use crate::{Extent, Options, in_parallel, kinds};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use xmem_task::Error;

/// The capacity that each trace needs, in bytes.
pub(crate) type Needs = BTreeMap<String, u64>;

/// The arguments of every run, so that it depends on nothing else of the machine.
pub(crate) fn arguments(trace: &Path, capacity: u64) -> Vec<OsString> {
    let capacity = capacity.to_string();
    let mut arguments = vec![OsString::from("replay"), trace.into()];
    arguments.extend(
        ["--cudnn", "model", "--format", "json", "--capacity", &capacity].map(OsString::from),
    );
    arguments
}

/// A device on which every trace fits.
const PLENTY: u64 = 1 << 40;

/// Replays the traces, and finds what each needs.
pub(crate) fn run(program: &Path, options: &Options, report: &mut Report) -> Result<Needs, Error> {
    let sampled = || {
        let names = recording::SAMPLED.iter().chain(&recording::SAMPLED_OF_GPUS);
        names.chain(&recording::SNAPSHOTS[..2]).map(|name| (*name).to_owned()).collect()
    };
    let mut names = match (options.traces.is_empty(), options.extent) {
        (false, _) => options.traces.clone(),
        (true, Extent::Full) => recording::all()?,
        (true, Extent::Sample) => sampled(),
    };
    names.retain(|name| options.wants(Input::of(name)));
    let results = in_parallel(&names, |runner, name| one(program, runner, name))?;
    let mut needs = Needs::new();
    for (name, (need, rows)) in names.into_iter().zip(results) {
        for row in rows {
            report.add(row);
        }
        needs.insert(name, need);
    }
    Ok(needs)
}

/// Three runs: with plenty of memory, with just enough, and with one byte less.
fn one(program: &Path, runner: &Runner, name: &str) -> Result<(u64, Vec<Row>), Error> {
    let path = runner.file("intact");
    let bytes = intact(name)?;
    std::fs::write(&path, &bytes).map_err(Error::file(&path))?;
    let inflated = bytes.len() as u64;
    let mut rows = Vec::new();
    let mut run = |capacity: u64, more: &[&str], wanted: fn(Outcome) -> bool| {
        let mut arguments = arguments(&path, capacity);
        arguments.extend(more.iter().map(OsString::from));
        let ended: Ended = runner.run(program, &arguments, None)?;
        let answer = Answer::read(&ended.stdout);
        let mut findings = judge::misbehavior(&ended, inflated);
        let outcome = Outcome::of(&ended);
        if !wanted(outcome) {
            findings.push(match outcome {
                Outcome::Fits => Finding::FalseFit,
                _ => Finding::IntactWithheld,
            });
        }
        let need = answer.min_capacity.unwrap_or(0);
        rows.push(Row::new("intact", "-", name, capacity, &ended, answer, findings));
        Ok::<_, Error>(need)
    };
    let need = run(PLENTY, &["--min-capacity"], |outcome| outcome == Outcome::Fits)?;
    run(need, &[], |outcome| outcome == Outcome::Fits)?;
    run(need.saturating_sub(1), &[], |outcome| outcome != Outcome::Fits)?;
    Ok((need, rows))
}

/// The bytes of an intact recording.
pub(crate) fn intact(name: &str) -> Result<Vec<u8>, Error> {
    let path = recording::path(name);
    Ok(match Input::of(name) {
        Input::Snapshot => kinds::snapshots::rewritten(&inflated(&path)?),
        Input::HostTrace | Input::GpuTrace => Recording::read(&path, name)?.variant().render(),
    })
}

/// The bytes of a compressed file.
pub(crate) fn inflated(path: &Path) -> Result<Vec<u8>, Error> {
    let file = std::fs::File::open(path).map_err(Error::file(path))?;
    zstd::decode_all(file).map_err(Error::file(path))
}
