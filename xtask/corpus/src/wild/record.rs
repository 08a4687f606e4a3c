//! Runs a script: counted on a virtual GPU, or recorded by `xmem profile` and replayed.

use super::Traces;
use super::catalogue::{Length, Run};
use super::facts::{Fact, Peaks};
use super::fetch::Source;
use super::job::{self, Bench, Job, end_of, python_file};
use super::judge::{Prediction, Range};
use crate::torch::Engine;
use crate::torch::process;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::Error;

/// More steps than a script of the catalogue makes.
const ALL_STEPS: u32 = 1_000_000;

/// Runs the script on a virtual GPU without a recorder, and gives the peaks that PyTorch counted.
pub(super) fn count(
    bench: &Bench,
    run: &Run,
    source: &Source,
) -> Result<Result<Fact, String>, Error> {
    let job = match Job::new(bench, run, source, "count")? {
        Ok(job) => job,
        Err(why) => return Ok(Err(why)),
    };
    let counted = job::made(bench.folder.join("counted"))?.join(format!("{}.json", run.name));
    remove(&counted)?;
    let steps = match run.length {
        Length::Complete => 0,
        Length::Steps(steps) => steps,
    };
    let mut command = Command::new(&bench.virtual_gpu);
    command.arg(&run.device).arg(bench.venv.python()).arg(python_file("count.py"));
    command.arg(&counted).arg(steps.to_string()).arg(&job.script);
    let done = job.start(bench, command, "count")?;
    if done.code != Some(0) {
        return Ok(Err(end_of(&done)));
    }
    let Some(answer) = json(&counted)? else {
        return Ok(Err("the script did not use the GPU".to_owned()));
    };
    job.clear()?;
    let peak = |name: &str| answer[name].as_u64();
    let (Some(allocated), Some(reserved), Some(torch)) =
        (peak("allocated"), peak("reserved"), answer["torch"].as_str())
    else {
        return Err(Error::Figures { path: counted });
    };
    let mut fact = Fact::of(run, source, torch, Peaks { allocated, reserved });
    fact.unknown = unknown(&done.stderr);
    Ok(Ok(fact))
}

/// The calls whose answer the virtual GPU did not know, as the program that runs it prints them.
fn unknown(stderr: &str) -> Vec<String> {
    let call = |line: &str| {
        let name = line.strip_prefix("log: UnknownSize(\"")?.strip_suffix("\")")?;
        Some(name.to_owned())
    };
    let mut calls: Vec<String> = stderr.lines().filter_map(call).collect();
    calls.sort();
    calls.dedup();
    calls
}

/// Records the script with an engine, and replays the trace.
pub(super) fn predict(
    bench: &Bench,
    run: &Run,
    source: &Source,
    engine: Engine,
    traces: Traces,
) -> Result<Result<Prediction, String>, Error> {
    let way = way(engine);
    let folder = job::made(bench.folder.join("traces"))?;
    let trace = folder.join(format!("{}.{way}.json.zst", run.name));
    if traces == Traces::New || !job::is_there(&trace) {
        remove(&trace)?;
        let job = match Job::new(bench, run, source, way)? {
            Ok(job) => job,
            Err(why) => return Ok(Err(why)),
        };
        let done = job.start(bench, profile(bench, run, &job, engine, &trace), way)?;
        if done.code != Some(0) || !job::is_there(&trace) {
            return Ok(Err(format!("xmem profile ({way}): {}", end_of(&done))));
        }
        job.clear()?;
    }
    replay(bench, run, &trace, &folder)
}

fn profile(bench: &Bench, run: &Run, job: &Job<'_>, engine: Engine, trace: &Path) -> Command {
    let steps = match run.length {
        Length::Complete => ALL_STEPS,
        Length::Steps(steps) => steps,
    };
    let mut command = Command::new(&bench.xmem);
    command.args(["profile", "-q", "--steps", &steps.to_string(), "-o"]).arg(trace);
    let device = run.device.as_str();
    match engine {
        Engine::Cpu => command.args(["--engine", "cpu", "--device-as", device]),
        Engine::VirtualGpu => command.args(["--virtual-gpu", device]),
    };
    command.arg("--").arg(bench.venv.python()).arg(&job.script);
    command
}

fn replay(
    bench: &Bench,
    run: &Run,
    trace: &Path,
    folder: &Path,
) -> Result<Result<Prediction, String>, Error> {
    let mut command = Command::new(&bench.xmem);
    command.arg("replay").arg(trace).args(["--device", &run.device, "--format", "json", "-q"]);
    // The cuDNN that the job would run with.
    command.arg("--cudnn").arg(bench.venv.folder());
    let done = process::run(command, folder, &run.name)?;
    let answer = serde_json::from_str(&done.stdout).ok().as_ref().and_then(prediction);
    Ok(answer.ok_or_else(|| format!("xmem replay: {}", end_of(&done))))
}

fn prediction(answer: &Value) -> Option<Prediction> {
    let peak = |name: &str| answer["peak"][name].as_u64();
    let end = |name: &str| answer["range"]["reserved_bytes"][name].as_u64();
    let peaks = Peaks { allocated: peak("allocated_bytes")?, reserved: peak("reserved_bytes")? };
    let range = Range { low: end("low")?, high: end("high")? };
    let confidence = answer["range"]["confidence"].as_str()?.to_owned();
    let withheld = answer["withheld"].as_array().is_some_and(|reasons| !reasons.is_empty());
    Some(Prediction { peaks, range, confidence, withheld })
}

const fn way(engine: Engine) -> &'static str {
    match engine {
        Engine::Cpu => "cpu",
        Engine::VirtualGpu => "virtual-gpu",
    }
}

fn json(path: &PathBuf) -> Result<Option<Value>, Error> {
    if !job::is_there(path) {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    serde_json::from_str(&text).map(Some).map_err(Error::Answer)
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_unknown_size_are_read_from_the_log() {
        let log = "loss 1.0\nlog: UnknownSize(\"cudnnGetRNNTempSpaceSizes\")\nlog: Other\n";
        assert_eq!(unknown(&log.repeat(2)), ["cudnnGetRNNTempSpaceSizes"]);
    }
}
