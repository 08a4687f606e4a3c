//! What to do about a job that may not fit: commands that go on from its answer.

use super::args::ReplayArgs;
use super::settings::Settings;
use crate::input;
use crate::shell::quoted;
use std::path::Path;
use xmem::types::printable;
use xmem::{Answer, Bytes, Decision, Device, Job};

/// The most larger devices that are tried.
const TRIED: usize = 3;

/// Commands, and what each is for. None for jobs that fit, and for standard input, which cannot be read again.
pub(super) fn commands(
    trace: &Path,
    job: &Job,
    (settings, answer): (&Settings, &Answer),
    args: &ReplayArgs,
) -> Vec<(String, String)> {
    let is_short = matches!(answer.decision().0, Decision::DoesNotFit | Decision::Tight);
    if !is_short || trace == Path::new("-") {
        return Vec::new();
    }
    let name = quoted(&input::name(trace));
    let here = device(args);
    let mut all = Vec::new();
    if let Some(larger) = larger(job, settings, answer) {
        let purpose = format!("fits on {} ({})", larger.name, larger.memory);
        all.push((format!("xmem replay {name} --device {}", larger.name), purpose));
    }
    all.extend(recorded(job, answer));
    all.extend(expandable(&name, &here, job, (settings, answer)));
    let changes = "tries allocator, optimizer and zero_grad";
    all.push((format!("xmem replay {name} {here} --tune"), changes.to_owned()));
    all.push((format!("xmem plan {name}"), "how little the same tensors need".to_owned()));
    if answer.trace.gpu.is_none() {
        let purpose = "what offloading to the host buys".to_owned();
        all.push((format!("xmem offload {name}"), purpose));
    }
    let known = args.device.device.as_deref().unwrap_or("NAME");
    all.push((
        format!("xmem fit -d {known} -- COMMAND"),
        "the largest batch, checkpointing and more, recorded".to_owned(),
    ));
    all.into_iter().map(|(command, why)| (printable(&command).into_owned(), why)).collect()
}

/// The job with expandable segments, which cost nothing, if it fits with them.
fn expandable(
    name: &str,
    here: &str,
    job: &Job,
    (settings, answer): (&Settings, &Answer),
) -> Option<(String, String)> {
    let estimate = settings.estimate.with_expandable_segments(&answer.setup)?;
    let there = estimate.job(job).ok()?;
    let purpose = format!("fits: needs {}, set in PYTORCH_CUDA_ALLOC_CONF", there.need.least);
    let conf = quoted(&there.setup.conf);
    let command = format!("xmem replay {name} {here} --alloc-conf {conf}");
    (there.decision().0 == Decision::Fits).then_some((command, purpose))
}

/// The best measures that fit, which `xmem fit` recorded for this device and kept with the trace.
fn recorded(job: &Job, answer: &Answer) -> Option<(String, String)> {
    let tried = job.profile().recording()?.tried.as_ref()?;
    let device = answer.device();
    let best = tried.fitting(&device.name, device.memory).next()?;
    let command = match best.gpus {
        1 => "COMMAND".to_owned(),
        gpus => format!("torchrun --nproc-per-node {gpus} SCRIPT"),
    };
    let time = best.step_percent.map_or_else(String::new, |percent| {
        format!(", step time {:+} %", i64::from(percent) - 100)
    });
    let purpose = format!("fits: needs {}{time}, recorded by xmem fit", best.needs);
    Some((format!("xmem run --with {} -- {command}", best.names), purpose))
}

/// The options that name the device.
fn device(args: &ReplayArgs) -> String {
    let mut words = Vec::new();
    let given = &args.device;
    words.extend(given.device.iter().flat_map(|name| ["--device".to_owned(), name.clone()]));
    if let Some(file) = &given.device_file {
        words.extend(["--device-file".to_owned(), input::name(file)]);
    }
    let capacity = |size: Bytes| {
        let mib = size.get().is_multiple_of(1 << 20);
        let text = if mib { format!("{}MiB", size.get() >> 20) } else { size.get().to_string() };
        ["--capacity".to_owned(), text]
    };
    words.extend(given.capacity.into_iter().flat_map(capacity));
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}

/// The smallest larger device of which a replay says that the job fits.
fn larger(job: &Job, settings: &Settings, answer: &Answer) -> Option<&'static Device> {
    let is_larger = |device: &&Device| {
        device.memory > answer.device().memory && device.memory >= answer.need.ample
    };
    let fits = |device: &&Device| {
        let there = settings.estimate.on((*device).clone()).job(job);
        there.is_ok_and(|there| there.decision().0 == Decision::Fits)
    };
    xmem::devices::cards().into_iter().filter(is_larger).take(TRIED).find(fits)
}
