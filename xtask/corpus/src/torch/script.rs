//! A script that is recorded, and whether what comes out is what its header says.

use super::expect::{self, Expectation};
use super::header::{Header, Trace};
use super::process::{self, Done};
use super::without;
use super::{Bench, DEVICE, Engine, Outcome, TESTS};
use crate::error::CorpusError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::{Error, repo};

/// In the folder of a recording; not compressed, so that it can be looked into here.
const TRACE: &str = "trace.json";
/// PyTorch's own, where a header asks for it.
const SNAPSHOT: &str = "snapshot.pickle";
/// The graph of the script, where a header says something about it.
const ARCHIVE: &str = "model.pt2";
/// A program of Python that prints the description of the loop in an archive.
const READ_JOB: &str = "import sys, zipfile\n\
    print(zipfile.ZipFile(sys.argv[1]).read('model/extra/xmem.job.json').decode())";
/// How the line of a trace begins that holds what the hook wrote: Kineto gives each key of the
/// metadata a line (libkineto, `output_json.cpp`).
const RECORDING: &str = "\"xmem_recording\": ";

/// What follows the recorded iterations.
const REST: &str = "\"xmem_rest\": ";

/// Bytes of a segment for requests of at most 1 MiB (c10/core/AllocatorConfig.h, `kSmallBuffer`).
const SMALL_SEGMENT: f64 = 2_097_152.0;

/// A script with its header.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) name: String,
    path: PathBuf,
    header: Header,
}

/// All scripts, by name. What lies in folders below is used by scripts, and none.
pub(super) fn all() -> Result<Vec<Script>, Error> {
    let folder = Path::new(TESTS).join("scripts");
    let is_script = |path: &PathBuf| {
        path.parent() == Some(&folder) && path.extension().is_some_and(|end| end == "py")
    };
    repo::files()?
        .into_iter()
        .filter(is_script)
        .map(|path| {
            let header = Header::read(&path, &repo::text(&path)?)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Script { name, path: repo::root().join(path), header })
        })
        .collect()
}

impl Script {
    /// The script whose peaks are those of this one: another one, or itself.
    pub(super) fn compared_with(&self) -> &str {
        self.header.same_peak.as_ref().map_or(&self.name, |same| &same.script)
    }

    /// Records the script and holds what comes out against its header.
    pub(super) fn check(&self, bench: &Bench) -> Result<Outcome, Error> {
        let folder = folder(bench, &self.name)?;
        let unclear = |what| CorpusError::Unusable { path: self.path.clone(), what };
        if !self.header.is_for(&bench.venv.torch).map_err(unclear)? {
            let wanted = self.header.torch.as_deref().unwrap_or_default();
            let remark = format!("not recorded: for torch {wanted}");
            return Ok(Outcome { remark, ..Outcome::default() });
        }
        if bench.engine == Engine::VirtualGpu
            && !self.header.virtual_gpu.is_for(&bench.venv.torch).map_err(unclear)?
        {
            let wanted = self.header.virtual_gpu.torch.as_deref().unwrap_or_default();
            let remark = format!("not recorded: on a virtual GPU for torch {wanted}");
            return Ok(Outcome { remark, ..Outcome::default() });
        }
        let skip = match bench.engine {
            Engine::Cpu => &self.header.skip_on_cpu,
            Engine::VirtualGpu => &self.header.virtual_gpu.skip,
        };
        if let Some(reason) = skip {
            let remark = format!("not recorded: {reason}");
            return Ok(Outcome { remark, ..Outcome::default() });
        }
        let before = names(&folder)?;
        let done = process::run(self.command(bench, bench.engine, &folder), &folder, "profile")?;
        let mut outcome = Outcome::default();
        for name in names(&folder)?.difference(&before) {
            // What the script writes is kept out of the folder where it runs.
            if !name.starts_with("profile.") && !name.starts_with(TRACE) && name != SNAPSHOT {
                outcome.complaints.push(format!("the recording left `{name}` behind"));
            }
        }
        match bench.engine {
            Engine::Cpu => self.check_outputs(&done, self.header.exit, &mut outcome),
            Engine::VirtualGpu => {
                let exit = self.header.virtual_gpu.exit.unwrap_or(self.header.exit);
                check_exit(&done, exit, &mut outcome);
                let wanted = &self.header.virtual_gpu;
                for (name, text, wanted, unwanted) in [
                    ("stdout", &done.stdout, &wanted.stdout, &wanted.stdout_without),
                    ("stderr", &done.stderr, &wanted.stderr, &wanted.stderr_without),
                ] {
                    outcome.complaints.extend(expect::lines(name, text, wanted, unwanted));
                }
            }
        }
        let trace = folder.join(TRACE);
        match (self.header.trace, trace.is_file()) {
            (Trace::Written, true) => match bench.engine {
                Engine::Cpu => self.check_trace(bench, &folder, &mut outcome)?,
                Engine::VirtualGpu => self.check_virtual(bench, &folder, &mut outcome)?,
            },
            (Trace::Written, false) => outcome.complaints.push("no trace was written".to_owned()),
            (Trace::None, true) => outcome.complaints.push("a trace was written".to_owned()),
            (Trace::None, false) => {}
        }
        if bench.engine == Engine::Cpu && !self.header.export.is_empty() {
            self.check_export(bench, &folder, &mut outcome)?;
        }
        if !self.header.trace_without.is_empty() {
            self.check_without(bench, &trace, &folder, &mut outcome)?;
        }
        if !outcome.complaints.is_empty() {
            outcome.complaints.push(format!("stderr ends with\n{}", end_of(&done.stderr)));
        }
        Ok(outcome)
    }

    /// Exports the script's graph, and holds the description of its loop against the header. The releases before 2.6 export
    /// none.
    fn check_export(
        &self,
        bench: &Bench,
        folder: &Path,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        if !Header::can_export(&bench.venv.torch) {
            return Ok(());
        }
        let archive = folder.join(ARCHIVE);
        let mut command = Command::new(&bench.xmem);
        command.args(["export", "--device-as", DEVICE, "-o"]).arg(&archive);
        set_up(&mut command, folder);
        self.add_command(&mut command, bench, folder);
        let done = process::run(command, folder, "export")?;
        check_exit(&done, 0, outcome);
        let mut command = Command::new(bench.venv.python());
        command.args(["-c", READ_JOB]).arg(&archive);
        match answer(command, folder, "export", &[0])? {
            Ok(job) => outcome.check(&self.header.export, &job, "xmem export"),
            Err(complaint) => {
                outcome.complaints.push(format!("{complaint}; {}", end_of(&done.stderr)));
            }
        }
        Ok(())
    }

    fn command(&self, bench: &Bench, engine: Engine, folder: &Path) -> Command {
        let filled = |text: &String| self.filled(bench, folder, text);
        let mut command = profile(bench, engine, folder, TRACE);
        command.args(self.header.options.iter().map(filled));
        if engine == Engine::VirtualGpu {
            command.args(self.header.virtual_gpu.options.iter().map(filled));
        }
        self.add_command(&mut command, bench, folder);
        command
    }

    /// Adds the script's own command to one of xmem's.
    fn add_command(&self, command: &mut Command, bench: &Bench, folder: &Path) {
        let filled = |text: &String| self.filled(bench, folder, text);
        command.arg("--").args(self.header.command.iter().map(filled));
        command.envs(self.header.environment.iter().map(|(name, value)| (name, filled(value))));
    }

    /// A text of the header with the places in it.
    fn filled(&self, bench: &Bench, folder: &Path, text: &str) -> String {
        let scripts = self.path.parent().unwrap_or(Path::new(""));
        let python = bench.venv.python();
        let bin = bench.venv.bin();
        let places: [(&str, &Path); 5] = [
            ("{python}", &python),
            ("{bin}", &bin),
            ("{script}", &self.path),
            ("{scripts}", scripts),
            ("{scratch}", folder),
        ];
        let fill =
            |text: String, (name, path): (&str, &Path)| text.replace(name, &path.to_string_lossy());
        places.into_iter().fold(text.to_owned(), fill)
    }

    /// Looks for texts that must not be in the trace, or in what xmem says about it.
    fn check_without(
        &self,
        bench: &Bench,
        trace: &Path,
        folder: &Path,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let text = std::fs::read(trace).map_err(Error::file(trace))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut texts = vec![("the trace", text)];
        for (place, answer) in [
            ("xmem inspect", inspect(bench, trace, folder)?),
            ("xmem replay", replay(bench, trace, folder)?),
        ] {
            texts.push((place, answer.map_or_else(|text| text, |answer| answer.to_string())));
        }
        for (place, text) in texts {
            outcome.complaints.extend(without::complaints(
                &self.header.trace_without,
                &text,
                place,
            ));
        }
        Ok(())
    }

    fn check_outputs(&self, done: &Done, exit: i32, outcome: &mut Outcome) {
        let header = &self.header;
        check_exit(done, exit, outcome);
        for (name, text, wanted, unwanted) in [
            ("stdout", &done.stdout, &header.stdout, &header.stdout_without),
            ("stderr", &done.stderr, &header.stderr, &header.stderr_without),
        ] {
            outcome.complaints.extend(expect::lines(name, text, wanted, unwanted));
        }
    }

    /// Holds the replay of a recording on a virtual GPU against the peaks that PyTorch counted.
    fn check_virtual(
        &self,
        bench: &Bench,
        folder: &Path,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let trace = folder.join(TRACE);
        let [facts, rest] = metadata(&trace, [RECORDING, REST])?;
        let Some(facts) = facts else {
            outcome.complaints.push("no xmem_recording in the trace".to_owned());
            return Ok(());
        };
        if facts["engine"] != "virtual-gpu" {
            outcome.complaints.push(format!("recorded with the engine {}", facts["engine"]));
        }
        outcome.check(&self.header.virtual_gpu.recording, &facts, "xmem_recording");
        let found = facts["iterations"]["count"].as_u64().map(|count| count as usize);
        if self.header.iterations.is_some_and(|wanted| Some(wanted) != found) {
            outcome.complaints.push(format!("{found:?} iterations were recorded"));
        }
        // Up to the end of the script, if it went on after the recorded iterations.
        let peaks_of = rest.as_ref().unwrap_or(&facts["virtual_gpu"]);
        let counted = |name: &str| peaks_of["peaks"][name].as_f64().unwrap_or(0.0);
        let counted = [counted("allocated"), counted("reserved")];
        match replay(bench, &trace, folder)? {
            Ok(answer) => {
                outcome.peaks = peaks(&answer);
                let replayed = outcome.peaks.unwrap_or_default();
                outcome.remark = format!("{} and {} bytes", replayed[0], replayed[1]);
                if let Some(complaint) = apart(replayed, counted, 0.0) {
                    outcome.complaints.push(format!("{complaint} than PyTorch counted"));
                }
                outcome.check(&self.header.virtual_gpu.replay, &answer, "xmem replay");
                if let Some(percent) = self.header.virtual_gpu.contains_cpu {
                    self.compare_with_cpu(bench, folder, (&answer, percent), outcome)?;
                }
            }
            Err(complaint) => outcome.complaints.push(complaint),
        }
        Ok(())
    }

    /// Records the script on the CPU as well, whose peaks must lie in the range of the answer.
    fn compare_with_cpu(
        &self,
        bench: &Bench,
        folder: &Path,
        (answer, percent): (&Value, f64),
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let folder = folder.join("cpu");
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        let done = process::run(self.command(bench, Engine::Cpu, &folder), &folder, "profile")?;
        check_exit(&done, 0, outcome);
        match replay(bench, &folder.join(TRACE), &folder)? {
            Ok(on_cpu) => {
                for (at, name) in ["allocated_bytes", "reserved_bytes"].into_iter().enumerate() {
                    let wanted = peaks(&on_cpu).unwrap_or_default()[at];
                    let bound = |end: &str| answer["range"][name][end].as_f64().unwrap_or(f64::NAN);
                    let (low, high) = (bound("low"), bound("high"));
                    let slack = 1.0 + percent / 100.0;
                    // Between the shares of the range, requests may be split otherwise than at its ends.
                    let segment = if name == "reserved_bytes" { SMALL_SEGMENT } else { 0.0 };
                    let text = format!("{name}: {wanted} on the CPU, {low}..{high} here");
                    if (low / slack - segment..=high * slack + segment).contains(&wanted) {
                        outcome.remark += &format!("; {text}");
                    } else {
                        outcome.complaints.push(text);
                    }
                }
            }
            Err(complaint) => outcome.complaints.push(format!("on the CPU: {complaint}")),
        }
        Ok(())
    }

    fn check_trace(
        &self,
        bench: &Bench,
        folder: &Path,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let trace = folder.join(TRACE);
        let [facts] = metadata(&trace, [RECORDING])?;
        match facts {
            Some(facts) => outcome.check(&self.header.recording, &facts, "xmem_recording"),
            None => outcome.complaints.push("no xmem_recording in the trace".to_owned()),
        }
        match inspect(bench, &trace, folder)? {
            Ok(answer) => {
                let found = answer["job"]["iterations"].as_array().map_or(0, Vec::len);
                if self.header.iterations.is_some_and(|wanted| wanted != found) {
                    outcome.complaints.push(format!("{found} iterations in the trace"));
                }
                outcome.remark = format!("{found} iterations");
                outcome.check(&self.header.inspect, &answer, "xmem inspect");
            }
            Err(complaint) => outcome.complaints.push(complaint),
        }
        match replay(bench, &trace, folder)? {
            Ok(answer) => {
                outcome.check(&self.header.replay, &answer, "xmem replay");
                if answer["verdict"] == "withheld" && !self.header.replay.contains_key("/withheld")
                {
                    outcome.complaints.push(format!("no verdict: {}", answer["withheld"]));
                }
                outcome.peaks = peaks(&answer);
            }
            Err(complaint) => outcome.complaints.push(complaint),
        }
        Ok(())
    }
}

fn check_exit(done: &Done, wanted: i32, outcome: &mut Outcome) {
    if done.code != Some(wanted) {
        let found = done.code.map_or("a signal".to_owned(), |code| code.to_string());
        let after = done.time.as_secs();
        outcome.complaints.push(format!("exit {found} after {after} s, not {wanted}"));
    }
}

impl Outcome {
    fn check(&mut self, wanted: &BTreeMap<String, Expectation>, answer: &Value, place: &str) {
        let complaints = wanted.iter().filter_map(|(pointer, it)| it.complaint(pointer, answer));
        self.complaints.extend(complaints.map(|text| format!("{place}: {text}")));
    }
}

/// Holds peaks of traces against each other where a header asks for it.
pub(super) fn compare_peaks(scripts: &[Script], outcomes: &mut [(String, Outcome)]) {
    let peaks: BTreeMap<String, [f64; 2]> = outcomes
        .iter()
        .filter_map(|(name, outcome)| Some((name.clone(), outcome.peaks?)))
        .collect();
    for (name, outcome) in outcomes {
        let script = scripts.iter().find(|script| script.name == *name);
        let Some(same) = script.and_then(|script| script.header.same_peak.as_ref()) else {
            continue;
        };
        // With `--only`, the other script may not have been asked for.
        let (Some(own), Some(other)) = (outcome.peaks, peaks.get(&same.script)) else { continue };
        if let Some(complaint) = apart(own, *other, same.within_percent) {
            outcome.complaints.push(format!("{complaint} than those of {}", same.script));
        }
    }
}

/// How the peaks of allocated and reserved memory differ, if by more than this.
pub(super) fn apart(own: [f64; 2], other: [f64; 2], percent: f64) -> Option<String> {
    let off = |at: usize| 100.0 * (own[at] - other[at]) / other[at];
    let close = [0, 1].iter().all(|at| off(*at).abs() <= percent);
    (!close).then(|| {
        format!("peaks are {:+.2} % (allocated) and {:+.2} % (reserved) other", off(0), off(1))
    })
}

/// `xmem profile`, still without options and command, to a trace of this name in the folder.
pub(super) fn profile(bench: &Bench, engine: Engine, folder: &Path, trace: &str) -> Command {
    let mut command = Command::new(&bench.xmem);
    command.args(["profile", "--device-as", DEVICE, "-o"]).arg(folder.join(trace));
    command.args([
        "--engine",
        match engine {
            Engine::Cpu => "cpu",
            Engine::VirtualGpu => "virtual-gpu",
        },
    ]);
    set_up(&mut command, folder);
    command
}

/// Threads and the network as they are the same everywhere. Python may keep what it has compiled:
/// without it, importing torch takes three times as long.
pub(super) fn set_up(command: &mut Command, folder: &Path) {
    command.current_dir(folder).env("OMP_NUM_THREADS", "1").env("HF_HUB_OFFLINE", "1");
    command.env_remove("PYTHONDONTWRITEBYTECODE");
}

/// An empty folder for what a recording leaves.
pub(super) fn folder(bench: &Bench, name: &str) -> Result<PathBuf, Error> {
    let folder = bench.scratch.join(name);
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    Ok(folder)
}

/// The names of what lies in a folder.
fn names(folder: &Path) -> Result<BTreeSet<String>, Error> {
    let entries = std::fs::read_dir(folder).map_err(Error::file(folder))?;
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    Ok(entries.flatten().map(name).collect())
}

/// What the hook wrote into the trace under each key.
fn metadata<const N: usize>(trace: &Path, keys: [&str; N]) -> Result<[Option<Value>; N], Error> {
    // Names of Python's built-in functions may be no UTF-8 (torch 2.6).
    let bytes = std::fs::read(trace).map_err(Error::file(trace))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(keys.map(|key| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(key))?;
        serde_json::from_str(line.trim_end().trim_end_matches(',')).ok()
    }))
}

/// What `xmem inspect` says, or why it says nothing.
fn inspect(bench: &Bench, trace: &Path, folder: &Path) -> Result<Result<Value, String>, Error> {
    let mut command = Command::new(&bench.xmem);
    command.arg("inspect").arg(trace).args(["--format", "json", "-q"]);
    answer(command, folder, "inspect", &[0])
}

/// What `xmem replay` says, or why it says nothing. The release is given, for a recording by hand
/// does not tell it.
pub(super) fn replay(
    bench: &Bench,
    trace: &Path,
    folder: &Path,
) -> Result<Result<Value, String>, Error> {
    let release = bench.venv.torch.rsplit_once('.').map_or("", |(release, _)| release);
    let mut command = Command::new(&bench.xmem);
    command.arg("replay").arg(trace).args(["--device", DEVICE, "--format", "json", "-q"]);
    command.args(["--torch", release]);
    // 4: there is no verdict.
    answer(command, folder, "replay", &[0, 1, 4])
}

fn answer(
    command: Command,
    folder: &Path,
    name: &str,
    codes: &[i32],
) -> Result<Result<Value, String>, Error> {
    let done = process::run(command, folder, name)?;
    Ok(match (done.code, serde_json::from_str(&done.stdout)) {
        (Some(code), Ok(answer)) if codes.contains(&code) => Ok(answer),
        (code, _) => Err(format!("xmem {name}: exit {code:?}: {}", end_of(&done.stderr))),
    })
}

/// Peaks of allocated and reserved memory, in bytes.
pub(super) fn peaks(answer: &Value) -> Option<[f64; 2]> {
    let peak = |name: &str| answer["peak"][name].as_f64();
    Some([peak("allocated_bytes")?, peak("reserved_bytes")?])
}

pub(super) fn end_of(text: &str) -> String {
    const LINES: usize = 15;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
