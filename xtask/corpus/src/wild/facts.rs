//! What PyTorch counted, kept in the repository with what it was counted of.

use super::DATA;
use super::catalogue::{Length, Run};
use super::fetch::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use xmem_task::{Error, repo};

const HOW: &str = "\
# Peaks of the scripts of catalogue.toml, in bytes: torch.cuda.max_memory_allocated() and max_memory_reserved() at the
# end of the script's own process, recorded with PyTorch's CUDA build, kernels stubbed (the virtual GPU of
# crates/xmem-virtual-gpu), without a recorder in the process. No figure was measured on a GPU.
#
# Written by: cargo xtask wild --count
";

/// The facts of all runs.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Facts {
    #[serde(default)]
    run: BTreeMap<String, Fact>,
}

/// What was counted of a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Fact {
    #[serde(skip)]
    name: String,
    pub(super) source: String,
    pub(super) version: String,
    pub(super) script: String,
    pub(super) arguments: Vec<String>,
    /// Steps after which the script was ended, which would run for hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steps: Option<u32>,
    pub(super) device: String,
    pub(super) torch: String,
    /// Calls of libraries whose answer a virtual GPU does not know: what they would have asked for is missing
    /// from the peaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unknown: Vec<String>,
    pub(super) allocated_bytes: u64,
    pub(super) reserved_bytes: u64,
}

/// Peaks of allocated and reserved memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Peaks {
    pub(super) allocated: u64,
    pub(super) reserved: u64,
}

impl Facts {
    /// The facts of the repository; none if there is no file yet.
    pub(super) fn read() -> Result<Self, Error> {
        let path = path();
        if !repo::root().join(&path).exists() {
            return Ok(Self::default());
        }
        let unclear = |source| Error::Data { path: path.clone(), source };
        let mut facts: Self = toml::from_str(&repo::text(&path)?).map_err(unclear)?;
        for (name, fact) in &mut facts.run {
            fact.name.clone_from(name);
        }
        Ok(facts)
    }

    /// Writes them, sorted by name.
    pub(super) fn write(&self) -> Result<(), Error> {
        let path = path();
        let text = toml::to_string(self).expect("tables of numbers, texts and lists");
        let file = repo::root().join(&path);
        std::fs::write(file, format!("{HOW}\n{text}")).map_err(Error::file(&path))
    }

    /// Adds a fact, or replaces that of the same run.
    pub(super) fn keep(&mut self, fact: Fact) {
        self.run.insert(fact.name.clone(), fact);
    }

    /// The fact of this run, or why there is none.
    pub(super) fn of(&self, run: &Run, source: &Source, torch: &str) -> Result<&Fact, String> {
        let again = format!("cargo xtask wild --count --only {}", run.name);
        let fact =
            self.run.get(&run.name).ok_or_else(|| format!("nothing was counted yet: {again}"))?;
        let peaks = Peaks { allocated: fact.allocated_bytes, reserved: fact.reserved_bytes };
        let now =
            Fact { unknown: fact.unknown.clone(), ..Fact::of(run, source, &fact.torch, peaks) };
        if *fact == now && is_release(&fact.torch, torch) {
            Ok(fact)
        } else {
            Err(format!("what was counted is of another version or other arguments: {again}"))
        }
    }
}

impl Fact {
    pub(super) fn of(run: &Run, source: &Source, torch: &str, peaks: Peaks) -> Self {
        Self {
            name: run.name.clone(),
            source: source.address.clone(),
            version: source.version.clone(),
            script: run.script.clone(),
            arguments: run.arguments.clone(),
            steps: match run.length {
                Length::Complete => None,
                Length::Steps(steps) => Some(steps),
            },
            device: run.device.clone(),
            torch: torch.to_owned(),
            unknown: Vec::new(),
            allocated_bytes: peaks.allocated,
            reserved_bytes: peaks.reserved,
        }
    }
}

impl Fact {
    /// Whether memory of recurrent layers is missing, whose size only cuDNN on a GPU knows.
    pub(super) fn is_lower_bound(&self) -> bool {
        self.unknown.iter().any(|call| call.starts_with("cudnnGetRNN"))
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
        let [allocated, reserved] = [self.allocated_bytes, self.reserved_bytes].map(mib);
        write!(f, "allocated {allocated:.1} MiB, reserved {reserved:.1} MiB")
    }
}

/// Whether a version with its build (`2.11.0+cu130`) is of this release.
fn is_release(version: &str, release: &str) -> bool {
    version.split('+').next() == Some(release)
}

fn path() -> PathBuf {
    Path::new(DATA).join("facts.toml")
}
