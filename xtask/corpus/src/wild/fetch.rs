//! Brings the scripts of a source onto this machine: with git, at a commit, only the paths that are needed; or
//! as part of a package that is installed.

use super::catalogue::{Origin, Run};
use super::job::Bench;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xmem_task::Error;

/// In a fetched repository, what it was fetched by; written last.
const COMPLETE: &str = "xmem-complete.txt";

/// A source that is here.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The URL of the repository, or `PyPI NAME`.
    pub(super) address: String,
    /// The commit, or the version of the package.
    pub(super) version: String,
    pub(super) place: Place,
}

/// Where scripts are read from.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A checkout, which is copied for each run.
    Checkout(PathBuf),
    /// The folder of installed packages, in which nothing is written.
    Packages(PathBuf),
}

/// The source of a run, or why it cannot be had.
pub(super) fn source(bench: &Bench, run: &Run) -> Result<Result<Source, String>, Error> {
    match &run.source {
        Origin::Git { url, commit, paths } => {
            let folder = bench.folder.join("sources").join(&run.origin);
            if let Err(why) = checkout(&folder, url, commit, paths)? {
                return Ok(Err(format!("cannot fetch {url}: {why}")));
            }
            let place = Place::Checkout(folder);
            Ok(Ok(Source { address: url.clone(), version: commit.clone(), place }))
        }
        Origin::Package(name) => installed(bench, name),
    }
}

fn checkout(
    folder: &Path,
    url: &str,
    commit: &str,
    paths: &[String],
) -> Result<Result<(), String>, Error> {
    let wanted = format!("{url}\n{commit}\n{}\n", paths.join("\n"));
    let stamp = folder.join(".git").join(COMPLETE);
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(Ok(()));
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(Error::file(folder))?;
    }
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let mut sparse = vec!["sparse-checkout", "set", "--no-cone"];
    let patterns: Vec<String> = paths.iter().map(|path| format!("/{path}")).collect();
    sparse.extend(patterns.iter().map(String::as_str));
    for arguments in [
        &["init", "--quiet"][..],
        &["remote", "add", "origin", url],
        &sparse,
        // Contents are fetched by the checkout, and only those of its paths.
        &["fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", commit],
        &["checkout", "--quiet", "--detach", commit],
    ] {
        if let Err(why) = git(folder, arguments)? {
            return Ok(Err(why));
        }
    }
    std::fs::write(&stamp, wanted).map_err(Error::file(&stamp))?;
    Ok(Ok(()))
}

/// Runs git in the folder; gives the first line of its complaint if it fails.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Result<Result<(), String>, Error> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments);
    // Nobody is there to type a password.
    command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    let spelled = format!("{command:?}");
    let done = command.output().map_err(Error::start(spelled))?;
    if done.status.success() {
        return Ok(Ok(()));
    }
    let text = String::from_utf8_lossy(&done.stderr);
    Ok(Err(text.lines().next().unwrap_or("git failed").to_owned()))
}

/// A package of the environment.
fn installed(bench: &Bench, name: &str) -> Result<Result<Source, String>, Error> {
    const ASK: &str = "import importlib.metadata, sys, sysconfig; \
        print(sysconfig.get_path('purelib')); print(importlib.metadata.version(sys.argv[1]))";
    let mut command = Command::new(bench.venv.python());
    command.args(["-c", ASK, name]);
    let spelled = format!("{command:?}");
    let done = command.output().map_err(Error::start(spelled))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let mut lines = text.lines();
    let (Some(folder), Some(version)) = (lines.next(), lines.next()) else {
        return Ok(Err(format!("the environment has no package {name}")));
    };
    Ok(Ok(Source {
        address: format!("PyPI {name}"),
        version: version.to_owned(),
        place: Place::Packages(PathBuf::from(folder)),
    }))
}
