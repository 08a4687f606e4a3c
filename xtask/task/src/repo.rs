//! Where things are in this repository.

use crate::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace root.
pub fn root() -> &'static Path {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.nth(2).expect("xtask/task lies in the workspace")
}

/// Paths of all files that git tracks or would track, relative to the root, sorted.
pub fn files() -> Result<Vec<PathBuf>, Error> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let text = output(Command::new("git").args(list))?;
    let mut files: Vec<PathBuf> = text
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect();
    files.sort();
    Ok(files)
}

/// The text of a file of the repository.
pub fn text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(root().join(path)).map_err(Error::file(path))
}

/// The output of `cargo metadata` with the graph of dependencies as cargo resolved it for this machine.
pub fn resolved_metadata() -> Result<serde_json::Value, Error> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let mut command = Command::new(cargo());
    command.args(["metadata", "--format-version=1"]);
    command.args(host.iter().flat_map(|host| ["--filter-platform", host]));
    serde_json::from_str(&output(&mut command)?).map_err(Error::Metadata)
}

/// What `cargo metadata` says about the workspace's own packages.
pub fn metadata() -> Result<serde_json::Value, Error> {
    let arguments = ["metadata", "--format-version=1", "--no-deps", "--offline"];
    let text = output(Command::new(cargo()).args(arguments))?;
    serde_json::from_str(&text).map_err(Error::Metadata)
}

/// Cargo's target folder.
pub fn target() -> Result<PathBuf, Error> {
    let metadata = metadata()?;
    let folder = metadata["target_directory"].as_str().unwrap_or("target");
    Ok(PathBuf::from(folder))
}

/// The cargo that started this program.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// What a program prints about the machine or the repository; empty if it fails.
pub fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

/// What a command prints that runs in the root of the repository.
pub fn output(command: &mut Command) -> Result<String, Error> {
    let spelled = format!("{command:?}");
    let done = command
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(Error::start(&spelled))?;
    if !done.status.success() {
        return Err(Error::Failed { command: spelled });
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
