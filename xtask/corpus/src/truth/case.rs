//! A case of `traces/`: the command that records it, and its files.

use crate::error::CorpusError;
use crate::torch::process;
use crate::traces::{self, EXPECTED, META, SNAPSHOT};
use std::path::{Path, PathBuf};
use std::process::Command;
use toml::{Table, Value};
use xmem_task::{Error, repo};

/// `how` of what is recorded here.
const HOW: &str = "recorded with PyTorch's CUDA build, kernels stubbed (cargo xtask record-truth)";
/// More iterations than any case has, so that the script runs to its end.
const STEPS: &str = "1000";

/// A recorded case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// The words of the command that recorded it, from the name of the script on.
    words: Vec<String>,
    /// The device, as `xmem profile --virtual-gpu` takes it.
    device: String,
}

/// All cases, or those of these names.
pub(super) fn all(names: &[String]) -> Result<Vec<Case>, Error> {
    let mut cases = Vec::new();
    for folder in traces::recorded()? {
        let name = traces::name(&folder);
        if names.is_empty() || names.contains(&name) {
            cases.push(Case::read(name, folder)?);
        }
    }
    match names.iter().find(|name| !cases.iter().any(|case| case.name == **name)) {
        Some(name) => Err(CorpusError::Unusable {
            path: repo::root().join("traces").join(name),
            what: "there is no such case".to_owned(),
        }
        .into()),
        None => Ok(cases),
    }
}

/// The figures of the CUDA side in a folder.
pub(super) fn expected(folder: &Path) -> Result<Table, Error> {
    traces::table(&folder.join(EXPECTED))
}

impl Case {
    fn read(name: String, folder: PathBuf) -> Result<Self, Error> {
        let meta = traces::table(&folder.join(META))?;
        let unclear = |file: &str| Error::Figures { path: folder.join(file) };
        let command = meta.get("command").and_then(Value::as_str);
        let words = command.and_then(shlex::split).ok_or_else(|| unclear(META))?;
        let device = expected(&folder)?;
        let device = device.get("device").and_then(|table| table.get("name"));
        let device = device.and_then(Value::as_str).ok_or_else(|| unclear(EXPECTED))?.to_owned();
        Ok(Self { name, folder, words, device })
    }

    /// Records the CUDA side into the folder. The error within says what went wrong.
    pub(super) fn record(
        &self,
        xmem: &Path,
        python: &Path,
        folder: &Path,
    ) -> Result<Result<(), String>, Error> {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(Error::file(folder))?;
        }
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let mut command = Command::new(xmem);
        command.args(["profile", "--no-stacks", "--steps", STEPS, "--virtual-gpu", &self.device]);
        // The script writes what is recorded of the CUDA side there.
        command.arg("--let-write").arg(folder);
        command.arg("-o").arg(folder.join("trace.json.zst")).arg("--").arg(python);
        command.args(&self.words).args(["--device", "cuda", "--how", HOW, "--out"]).arg(folder);
        command.current_dir(repo::root()).env("OMP_NUM_THREADS", "1").env("HF_HUB_OFFLINE", "1");
        let done = process::run(command, folder, "profile")?;
        let is_there = folder.join(EXPECTED).is_file() && folder.join(SNAPSHOT).is_file();
        Ok(if is_there {
            Ok(())
        } else {
            let end: Vec<&str> = done.stderr.lines().rev().take(4).collect();
            let end: Vec<&str> = end.into_iter().rev().collect();
            Err(format!("nothing was recorded: {}", end.join(" | ")))
        })
    }

    /// Replaces what is kept. The smallest capacity, which is not recorded here, stays where the peaks stay.
    pub(super) fn replace(&self, from: &Path, new: &Table, kept: &Table) -> Result<(), Error> {
        let mut new = new.clone();
        if let Some(capacity) =
            kept.get("min-capacity").filter(|_| new.get("peak") == kept.get("peak"))
        {
            new.insert("min-capacity".to_owned(), capacity.clone());
        }
        let path = self.folder.join(EXPECTED);
        std::fs::write(&path, new.to_string()).map_err(Error::file(&path))?;
        let path = self.folder.join(SNAPSHOT);
        std::fs::copy(from.join(SNAPSHOT), &path).map_err(Error::file(&path))?;
        Ok(())
    }
}
