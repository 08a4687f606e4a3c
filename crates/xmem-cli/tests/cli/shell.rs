//! Running the command.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
#[cfg(unix)]
use std::path::Path;
use std::process::{Command, Output, Stdio};

const NEWEST: xmem::TorchVersion = xmem::simulator::newest_release();

/// The result of a run of the command.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }

    /// Standard output as one document a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// The command, with nothing of the tester's environment that changes what it prints.
pub(crate) fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = prepared(Command::new(env!("CARGO_BIN_EXE_xmem")));
    command.args(args);
    command
}

/// A command without what changes the output of `xmem` in the tester's environment.
pub(crate) fn prepared(mut command: Command) -> Command {
    // What is installed on the tester's machine is no part of a test.
    command.env("COLUMNS", "100").env("XMEM_CUDNN", "model");
    for name in ["XMEM_LOG", "NO_COLOR", "CLICOLOR_FORCE"]
        .iter()
        .chain(xmem::simulator::alloc_conf_variables(NEWEST))
    {
        command.env_remove(name);
    }
    command
}

/// A line as it is typed into a shell in `folder`, with the command and programs of `programs` before others; what it prints
/// goes to standard output. There is no input.
#[cfg(unix)]
pub(crate) fn typed(line: &str, folder: &crate::job::Folder, programs: Option<&Path>) -> Command {
    let mut shell = prepared(Command::new("sh"));
    let own = Path::new(env!("CARGO_BIN_EXE_xmem")).parent();
    let earlier = std::env::var_os("PATH").unwrap_or_default();
    let first = programs.into_iter().chain(own).map(Path::to_owned);
    let path = std::env::join_paths(first.chain(std::env::split_paths(&earlier)));
    shell.env("PATH", path.expect("a path")).env("HOME", folder.path("home"));
    shell.args(["-c", &format!("exec 2>&1; {line}")]).current_dir(folder.path("."));
    shell.stdin(Stdio::null());
    shell
}

/// Runs the command without input.
pub(crate) fn xmem<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    command(args).stdin(Stdio::null()).output().expect("runs").into()
}

/// Runs the command with `input` on standard input.
pub(crate) fn xmem_with_input<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
    input: &[u8],
) -> Ran {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    // A command that is called wrongly reads nothing.
    let taken = child.stdin.take().expect("piped").write_all(input);
    let refused = taken.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe);
    assert!(!refused, "takes its input");
    child.wait_with_output().expect("ends").into()
}
