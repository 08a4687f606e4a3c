//! kubectl, as a user of the cluster runs it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use xmem_task::tally::text_of;
use xmem_task::{Error, TaskError};

/// The longest time of a command, in seconds.
const LIMIT: &str = "120";

/// kubectl printed something else than JSON.
#[derive(Debug, thiserror::Error)]
#[error("cannot understand the output of kubectl")]
pub(super) struct OutputError(#[source] pub(super) serde_json::Error);

impl TaskError for OutputError {}

/// kubectl for one cluster.
#[derive(Clone, Debug)]
pub(super) struct Kubectl {
    program: PathBuf,
    folder: PathBuf,
}

/// What a command said.
#[derive(Debug)]
pub(super) struct Said {
    /// The exit status; -1 if there is none.
    pub(super) exit: i32,
    /// Standard output and standard error.
    pub(super) text: String,
}

impl Kubectl {
    /// `folder` has the file `kubeconfig`, and is the home of the user.
    pub(super) fn new(program: &Path, folder: &Path) -> Self {
        Self { program: program.to_owned(), folder: folder.to_owned() }
    }

    /// Runs a command.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Said, Error> {
        let output = self.output(arguments)?;
        Ok(Said { exit: output.status.code().unwrap_or(-1), text: text_of(&output) })
    }

    /// Runs a command that must succeed, and gives its standard output.
    pub(super) fn must(&self, arguments: &[&str]) -> Result<String, Error> {
        let output = self.output(arguments)?;
        if !output.status.success() {
            print!("{}", text_of(&output));
            return Err(Error::Failed { command: format!("kubectl {}", arguments.join(" ")) });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The version of the program.
    pub(super) fn version(&self) -> Result<String, Error> {
        let text = self.must(&["version", "--client", "-o", "json"])?;
        let value: Value = serde_json::from_str(&text).map_err(OutputError)?;
        Ok(value["clientVersion"]["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }

    fn output(&self, arguments: &[&str]) -> Result<Output, Error> {
        Command::new("timeout")
            .arg(LIMIT)
            .arg(&self.program)
            .args(arguments)
            // Nothing of the caller's own clusters.
            .env_clear()
            .env("HOME", &self.folder)
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("PATH", "/usr/bin:/bin")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(Error::start("kubectl"))
    }
}
