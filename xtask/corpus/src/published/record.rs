//! Runs scripts of a source on a virtual GPU.

use super::catalogue::Source;
use super::data;
use super::figures::Run;
use crate::torch::process;
use crate::torch::venv::Venv;
use crate::wild::fetch;
use crate::wild::job::made;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::{Error, repo, run};

/// In a folder with packages, what was installed; written last.
const INSTALLED: &str = "installed.txt";

/// What every run needs.
#[derive(Debug)]
pub(super) struct Bench {
    /// xmem, which keeps the values that follow from the host.
    pub(super) xmem: PathBuf,
    /// The program that runs a command on a virtual GPU, and nothing else.
    pub(super) virtual_gpu: PathBuf,
    /// Where repositories, scripts and packages are kept.
    pub(super) folder: PathBuf,
}

impl Bench {
    /// The folder with the repository of a source: the one that `given` names for it (`OWNER/NAME=FOLDER`), or a clone.
    /// The inner error is what git says if there can be no clone.
    pub(super) fn repository(
        &self,
        source: &Source,
        given: &[String],
    ) -> Result<Result<PathBuf, String>, Error> {
        let named = |given: &String| {
            let (name, folder) = given.split_once('=')?;
            (name == source.repository).then(|| PathBuf::from(folder))
        };
        if let Some(folder) = given.iter().find_map(named) {
            return Ok(Ok(folder));
        }
        let folder = made(self.folder.join("repositories"))?;
        let name = source.repository.replace('/', "+");
        let clone = folder.join(&name);
        if clone.join("HEAD").is_file() {
            return Ok(Ok(clone));
        }
        // Contents are fetched when they are read.
        let arguments = ["clone", "--quiet", "--bare", "--filter=blob:none", &source.url(), &name];
        Ok(fetch::git(&folder, &arguments)?.map(|()| clone))
    }

    /// Runs a group, and gives its results by key.
    pub(super) fn record(
        &self,
        source: &Source,
        run: &Run,
        repository: &Path,
        venv: &Venv,
    ) -> Result<BTreeMap<String, f64>, Error> {
        let checkout = self.checkout(source, &run.commit, repository)?;
        let mut found = BTreeMap::new();
        for rank in &source.as_ranks {
            found.extend(self.record_rank(source, run, &checkout, venv, *rank)?);
        }
        Ok(found)
    }

    /// Runs a group as one process of its job.
    fn record_rank(
        &self,
        source: &Source,
        run: &Run,
        checkout: &Path,
        venv: &Venv,
        rank: u32,
    ) -> Result<BTreeMap<String, f64>, Error> {
        let results = self.folder.join(format!("{}.results.json", source.name));
        if results.exists() {
            std::fs::remove_file(&results).map_err(Error::file(&results))?;
        }
        let mut command = if source.values || source.ranks.is_some() {
            let mut command = Command::new(&self.xmem);
            command.args(["run", "--quiet", "--virtual-gpu", &run.device, "--let-write"]);
            command.arg(&self.folder);
            if let Some(ranks) = source.ranks {
                command.arg("--ranks").arg(ranks.to_string()).arg("--rank").arg(rank.to_string());
            }
            command.arg("--");
            command
        } else {
            let mut command = Command::new(&self.virtual_gpu);
            command.arg(&run.device);
            command
        };
        command.arg(venv.python()).arg(data(&source.driver));
        command.arg(checkout).arg(&run.group).arg(&results).current_dir(&self.folder);
        let packages = source.packages.get(&run.packages).filter(|packages| !packages.is_empty());
        if let Some(packages) = packages {
            let name = format!("{}-{}", source.name, run.packages);
            command.env("PYTHONPATH", self.installed(&name, packages, venv)?);
        }
        command.env("OMP_NUM_THREADS", "2").env("HF_HUB_OFFLINE", "1");
        let logs = made(self.folder.join("logs"))?;
        let name = format!("{}.{}.{}", source.name, run.group.replace('/', "."), run.device);
        process::run(command, &logs, &name)?;
        let text = std::fs::read_to_string(&results).unwrap_or_default();
        let found: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        for (key, case) in &found {
            if let Some(error) = case["error"].as_str() {
                println!("  {key}: {error}");
            }
        }
        Ok(found
            .into_iter()
            .filter_map(|(key, case)| Some((key, case["value"].as_f64()?)))
            .collect())
    }

    /// The files of a commit.
    fn checkout(&self, source: &Source, commit: &str, repository: &Path) -> Result<PathBuf, Error> {
        let folder = self.folder.join("sources").join(format!("{}-{commit}", source.name));
        if folder.is_dir() {
            return Ok(folder);
        }
        let git = || {
            let mut command = Command::new("git");
            command.arg("--git-dir").arg(repository);
            command
        };
        // Not every commit has all of them.
        let listed =
            repo::output(git().args(["ls-tree", "--name-only", commit]).args(&source.paths))?;
        // The folder has its name once all of it is there.
        let begun = made(folder.with_extension("begun"))?;
        let archive = folder.with_extension("tar");
        // Without the attributes of the commit, for which git would read files that a partial copy lacks.
        let mut pack = git();
        pack.args(["archive", "--worktree-attributes", "--output"]).arg(&archive);
        run::succeed(pack.arg(commit).args(listed.lines()))?;
        run::succeed(Command::new("tar").arg("xf").arg(&archive).arg("-C").arg(&begun))?;
        std::fs::remove_file(&archive).map_err(Error::file(&archive))?;
        std::fs::rename(&begun, &folder).map_err(Error::file(&folder))?;
        Ok(folder)
    }

    /// A folder with packages that take the place of those of the environment, without what they depend on.
    fn installed(&self, name: &str, packages: &[String], venv: &Venv) -> Result<PathBuf, Error> {
        let folder = self.folder.join("packages").join(name);
        let stamp = folder.join(INSTALLED);
        let wanted = packages.join("\n");
        if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(folder);
        }
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(Error::file(&folder))?;
        }
        venv.install_into(&folder, packages)?;
        std::fs::write(&stamp, wanted).map_err(Error::file(&stamp))?;
        Ok(folder)
    }
}
