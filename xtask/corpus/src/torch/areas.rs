//! The areas of CUDA, checked on virtual GPUs (`crates/xmem-virtual-gpu/tests/areas`): all on a machine with two
//! devices, and the quick ones on a device of each compute capability.

use super::process;
use super::script::{self, end_of};
use super::{Bench, Outcome};
use crate::error::CorpusError;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use xmem_task::{Error, repo, run};

/// The name by which `--only` selects them.
pub(super) const NAME: &str = "cuda_areas";
const SCRIPT: &str = "crates/xmem-virtual-gpu/tests/areas/areas.py";
/// The script knows the properties of this device.
const DEVICES: &str = "h100-80g:2";
/// The catalog, without parts of devices.
const CATALOG: &str = "crates/xmem-devices/data/devices";
const PARTS: &str = "mig.toml";
/// What the virtual GPU says of a device that this release of PyTorch was not compiled for.
const NO_KERNELS: &str = "has no kernels for compute capability";

/// Areas on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) name: String,
    /// The device and the number of them.
    device: String,
    quick: bool,
}

/// All areas on one device; the quick ones on the first device of each compute capability, or on every device.
pub(super) fn all(every_device: bool) -> Result<Vec<Areas>, Error> {
    let mut all = vec![Areas { name: NAME.to_owned(), device: DEVICES.to_owned(), quick: false }];
    let mut seen = BTreeSet::new();
    for device in catalog()? {
        if seen.insert(device.compute_capability.value) || every_device {
            all.push(Areas {
                name: format!("{NAME}_{}", device.name),
                device: device.name,
                quick: true,
            });
        }
    }
    Ok(all)
}

#[derive(Deserialize)]
struct Catalog {
    device: Vec<Device>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Device {
    name: String,
    compute_capability: Capability,
}

#[derive(Deserialize)]
struct Capability {
    value: String,
}

fn catalog() -> Result<Vec<Device>, Error> {
    let is_catalog = |path: &&std::path::PathBuf| {
        path.parent() == Some(Path::new(CATALOG))
            && path.extension().is_some_and(|extension| extension == "toml")
            && !path.ends_with(PARTS)
    };
    let mut devices = Vec::new();
    for path in repo::files()?.iter().filter(is_catalog) {
        let catalog: Catalog = toml::from_str(&repo::text(path)?).map_err(|error| {
            CorpusError::Unusable { path: path.clone(), what: error.to_string() }
        })?;
        devices.extend(catalog.device);
    }
    Ok(devices)
}

impl Areas {
    /// Runs the script, which succeeds if each area behaves as documented.
    pub(super) fn check(&self, bench: &Bench) -> Result<Outcome, Error> {
        run::cargo(&[
            "build",
            "-p",
            "xmem-virtual-gpu",
            "--example",
            "run",
            "--quiet",
            "--locked",
        ])?;
        let folder = script::folder(bench, &self.name)?;
        let mut command = Command::new(repo::target()?.join("debug/examples/run"));
        command.arg(&self.device).arg(bench.venv.python()).arg(repo::root().join(SCRIPT));
        command.args(self.quick.then_some("--quick"));
        script::set_up(&mut command, &folder);
        let done = process::run(command, &folder, "areas")?;
        if self.quick && done.stderr.contains(NO_KERNELS) {
            return Ok(Outcome {
                remark: "no kernels in this release".to_owned(),
                ..Outcome::default()
            });
        }
        let remark = done.stdout.lines().last().unwrap_or_default().to_owned();
        let mut outcome = Outcome { remark, ..Outcome::default() };
        if done.code != Some(0) {
            let failed = done.stdout.lines().filter(|line| line.starts_with("FAILED"));
            outcome.complaints.extend(failed.map(str::to_owned));
            outcome.complaints.push(format!("exit {:?}: {}", done.code, end_of(&done.stderr)));
        }
        Ok(outcome)
    }
}
