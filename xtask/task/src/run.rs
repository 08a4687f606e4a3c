//! Running the steps of a task, one after the other, each with its title and duration.

use crate::Error;
use crate::repo;
use std::process::Command;
use std::time::Instant;

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
    let spelled = format!("cargo {}", arguments.join(" "));
    let status = Command::new(repo::cargo())
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(repo::root())
        .status()
        .map_err(Error::start(&spelled))?;
    if status.success() { Ok(()) } else { Err(Error::Failed { command: spelled }) }
}
