//! Running the steps of a task, one after the other, each with its title and duration.

use crate::Error;
use crate::repo;
use std::process::Command;
use std::time::Instant;

/// How variables begin that `cargo run` sets for a program.
const OF_CARGO_RUN: [&str; 2] = ["CARGO_MANIFEST_", "CARGO_PKG_"];

/// Prints the title, does the step and says how long it took.
pub fn step(title: &str, body: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    println!("── {title}");
    let start = Instant::now();
    body()?;
    println!("── {title}: ok, {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs cargo with these arguments in the workspace root.
pub fn cargo(arguments: &[&str]) -> Result<(), Error> {
    cargo_with(arguments, &[])
}

/// Like [`cargo`], with additional environment variables.
pub fn cargo_with(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), Error> {
    let mut command = Command::new(repo::cargo());
    command.args(arguments).current_dir(repo::root());
    // Where `cargo run` has started this program. Build scripts look at these variables, and would run again.
    for (name, _) in std::env::vars_os() {
        if OF_CARGO_RUN.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.envs(environment.iter().copied());
    named(&mut command, format!("cargo {}", arguments.join(" ")))
}

/// Runs a command, and fails if it does not succeed.
pub fn succeed(command: &mut Command) -> Result<(), Error> {
    let spelled = format!("{command:?}");
    named(command, spelled)
}

fn named(command: &mut Command, spelled: String) -> Result<(), Error> {
    let status = command.status().map_err(Error::start(&spelled))?;
    if status.success() { Ok(()) } else { Err(Error::Failed { command: spelled }) }
}
