//! What is checked: traces, and the devices on which their job may be started.

use super::args::{CheckArgs, CheckFormat};
use super::error::CheckFailure;
use super::kubernetes::Pods;
use crate::config::Config;
use crate::device::{self, DeviceArgs};
use crate::error::CliError;
use crate::input::{self, Kind};
use crate::traces::Paths;
use std::path::{Path, PathBuf};
use xmem::Device;
use xmem_gate::{Directives, JobRequest, LawValue, Rules, SlurmOptions};

/// The traces of a job and the devices on which it may be started.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) traces: Vec<PathBuf>,
    pub(super) paths: Paths,
    /// The smallest first; at least one.
    pub(super) devices: Vec<Device>,
    /// The number of GPUs that the job asks for.
    pub(super) gpus: u32,
    /// The rules of its partitions, or of its namespace.
    pub(super) rules: Rules,
    /// The value of a law, if there is one in place of a trace.
    pub(super) at: Option<LawValue>,
    /// The manifest that asks for the GPUs, if there is one.
    pub(super) pods: Option<Pods>,
}

/// A job script is not longer than this.
const SCRIPT: u64 = 4 << 20;

impl Subject {
    /// What the arguments and the settings name.
    pub(super) fn of(args: &CheckArgs, config: &Config) -> Result<Self, CliError> {
        if let Some(file) = &args.request.k8s {
            return Self::of_manifest(args, file, config);
        }
        let mut partitions = args.request.partition.clone();
        let mut traces = args.traces.clone();
        let mut paths = Paths::Any;
        let mut at = args.at.clone();
        let request = if let Some(path) = &args.request.slurm_job {
            let script = script(path)?;
            let mut request = script.request().map_err(|error| of_script(path, error))?;
            at = at.or_else(|| script.at.clone());
            if traces.is_empty() {
                let folder = path.parent().unwrap_or(Path::new(""));
                traces = script.traces.iter().map(|trace| folder.join(trace)).collect();
                paths = Paths::Literal;
            }
            if traces.is_empty() {
                return Err(CheckFailure::NoTraceInScript { path: path.clone() }.into());
            }
            request.partitions.append(&mut partitions);
            Some(request)
        } else if let Some(text) = &args.request.request {
            let mut request: JobRequest = text.parse().map_err(CheckFailure::Request)?;
            let constraint = args.request.constraint.as_deref().unwrap_or_default();
            request.features = JobRequest::constraint(constraint);
            request.partitions.append(&mut partitions);
            Some(request)
        } else {
            None
        };
        if traces.is_empty() {
            return Err(CheckFailure::NoTrace.into());
        }
        let Some(request) = request else {
            let devices = devices(args, config)?;
            let rules = config.site.rules_of_partitions(&partitions);
            return Ok(Self { traces, paths, devices, gpus: 1, rules, at, pods: None });
        };
        Self::of_request((traces, paths, at), &request, config)
    }

    /// What a submission names; none if it is not about GPUs or names no trace.
    pub(super) fn of_submission(
        options: &SlurmOptions,
        config: &Config,
    ) -> Result<Result<Self, Unchecked>, CliError> {
        let folder = options.directory.clone().unwrap_or_default();
        let script = match options.script.as_ref().map(|path| script(&folder.join(path))) {
            None => Directives::default(),
            Some(Ok(script)) => script,
            Some(Err(error)) => {
                let request = options.request(&Directives::default());
                let Some(request) = request.ok().filter(JobRequest::asks_for_gpus) else {
                    return Err(error);
                };
                let rules = config.site.rules_of_partitions(&request.partitions);
                return Ok(Err(Unchecked::by(&error, rules)));
            }
        };
        let request = options.request(&script).map_err(CheckFailure::Submission)?;
        let rules = config.site.rules_of_partitions(&request.partitions);
        if !request.asks_for_gpus() {
            return Ok(Err(Unchecked { note: None, rules }));
        }
        let traces: Vec<PathBuf> =
            options.traces(&script).iter().map(|trace| folder.join(trace)).collect();
        if let Some(missing) = traces.iter().find(|trace| !trace.exists()) {
            let note = format!(
                "GPU memory was not checked: the trace `{}` does not exist",
                xmem::types::printable_path(missing)
            );
            return Ok(Err(Unchecked { note: Some(note), rules }));
        }
        if traces.is_empty() {
            let note = "GPU memory was not checked: the job names no trace; add a line \
                        `#XMEM --trace FILE` to the script, or set XMEM_TRACE";
            return Ok(Err(Unchecked { note: Some(note.to_owned()), rules }));
        }
        let at = script.at;
        // The rules of its partitions, also if its GPU is not known.
        let subject = Self::of_request((traces, Paths::Literal, at), &request, config);
        Ok(subject.map_err(|error| Unchecked::by(&error, rules)))
    }

    fn of_manifest(args: &CheckArgs, file: &Path, config: &Config) -> Result<Self, CliError> {
        if args.request.write && args.traces.iter().any(|trace| trace == Path::new("-")) {
            return Err(CheckFailure::WriteOfStdin.into());
        }
        let pods = Pods::read(file, args.request.namespace.as_deref(), config)?;
        Ok(Self {
            traces: args.traces.clone(),
            paths: Paths::Any,
            devices: pods.placement.devices.clone(),
            gpus: pods.placement.count,
            rules: pods.rules.clone(),
            at: args.at.clone(),
            pods: Some(pods),
        })
    }

    fn of_request(
        (traces, paths, at): (Vec<PathBuf>, Paths, Option<LawValue>),
        request: &JobRequest,
        config: &Config,
    ) -> Result<Self, CliError> {
        let rules = config.site.rules_of_partitions(&request.partitions);
        let found = config.site.candidates(request).map_err(|source| CheckFailure::Unresolved {
            source,
            site: config.site_file.clone(),
        })?;
        let devices = found.devices.into_iter().cloned().collect();
        Ok(Self { traces, paths, devices, gpus: found.count, rules, at, pods: None })
    }
}

/// A submission that is let through without a check.
#[derive(Debug)]
pub(super) struct Unchecked {
    /// Why, if the user can change it.
    pub(super) note: Option<String>,
    pub(super) rules: Rules,
}

impl Unchecked {
    fn by(error: &CliError, rules: Rules) -> Self {
        let note = format!("GPU memory was not checked: {}", error.with_causes());
        Self { note: Some(note), rules }
    }
}

/// The device of the options, else that of the settings. For SkyPilot, without an option, all of its GPUs.
fn devices(args: &CheckArgs, config: &Config) -> Result<Vec<Device>, CliError> {
    let given = &args.device;
    if given.device.is_some() || given.device_file.is_some() || given.capacity.is_some() {
        return Ok(vec![device::choose(given)?]);
    }
    if args.decision.format == CheckFormat::Skypilot {
        let mut all: Vec<&Device> =
            xmem_gate::accelerators().into_iter().flat_map(|gpu| gpu.devices).collect();
        all.sort_by_key(|device| device.memory);
        return Ok(all.into_iter().cloned().collect());
    }
    let settings = DeviceArgs {
        device: config.get("device"),
        device_file: None,
        capacity: config.get("budget"),
    };
    Ok(vec![device::choose(&settings)?])
}

fn script(path: &Path) -> Result<Directives, CliError> {
    let bytes = input::raw(path, Kind::Script, None)?;
    let head = &bytes[..bytes.len().min(SCRIPT as usize)];
    Directives::of_script(&String::from_utf8_lossy(head))
        .map_err(|error| of_script(path, error).into())
}

fn of_script(path: &Path, source: xmem_gate::SlurmError) -> CheckFailure {
    CheckFailure::Script { path: path.to_owned(), source }
}
