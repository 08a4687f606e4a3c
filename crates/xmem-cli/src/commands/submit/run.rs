//! `xmem submit`: the check in front of `sbatch`, `salloc` or `srun`, for sites without plug-ins.

use super::args::SubmitArgs;
use super::error::SubmitFailure;
use crate::commands::check::{self, CheckArgs, Decided};
use crate::commands::{Command, Outcome};
use crate::config::Config;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::Global;
use crate::guard::{InternalError, Panicked};
use crate::terminal::say;
use std::sync::mpsc;
use std::thread;
use xmem_gate::{Action, SlurmCommand, SlurmOptions};

/// The commands that submit jobs.
const PROGRAMS: [&str; 3] = ["sbatch", "salloc", "srun"];

/// Checks the submission, and runs the command as it was given, unless the job is rejected.
pub(crate) fn run(args: &SubmitArgs, global: &Global) -> Outcome {
    let command = SlurmCommand::new(&args.command);
    if !PROGRAMS.contains(&command.program.as_str()) {
        return Err(SubmitFailure::NotSlurm { program: command.program }.into());
    }
    // A step of a job that was checked before.
    let is_step = command.program == "srun" && std::env::var_os("SLURM_JOB_ID").is_some();
    let mut rejected = false;
    if !is_step {
        let config = Config::load(&args.settings)?;
        let help = config.site.help.clone();
        let decisions = decisions(args, &command, config, global)?;
        let last = decisions.iter().rposition(|decided| decided.action != Action::Admit);
        for (at, decided) in decisions.iter().enumerate() {
            let prefix = if decided.action == Action::Reject { "error: " } else { "" };
            let help = help.as_deref().filter(|_| last == Some(at));
            for line in decided.lines(help).lines() {
                if let Some(message) = line.strip_prefix("message=") {
                    say(&format!("xmem: {prefix}{message}"));
                }
            }
            rejected |= decided.action == Action::Reject;
        }
    }
    if rejected {
        return Ok(Exit::DoesNotFit);
    }
    Err(execute(&args.command).into())
}

/// The decision about each component, within the site's time: a job that takes longer is let through.
fn decisions(
    args: &SubmitArgs,
    command: &SlurmCommand,
    config: Config,
    global: &Global,
) -> Result<Vec<Decided>, CliError> {
    let timeout = config.site.timeout;
    let rules = config.site.rules_of_partitions(&[]);
    let mut submissions = command.submissions(|name| std::env::var(name).ok());
    if !args.trace.is_empty() {
        let traces: Vec<String> =
            args.trace.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        for options in &mut submissions {
            options.environment.insert("XMEM_TRACE".to_owned(), traces.join(":"));
            options.prefer_environment = true;
        }
    }
    let check = check_args(args)?;
    let global = global.clone();
    let (answer, answers) = mpsc::channel();
    thread::spawn(move || {
        let of = |options: &SlurmOptions| check::submission(&check, &config, options, &global);
        // Nobody waits any longer.
        let _ = answer.send(submissions.iter().map(of).collect::<Vec<_>>());
    });
    Ok(answers.recv_timeout(timeout).unwrap_or_else(|_| {
        let note = format!("GPU memory was not checked: no answer within {timeout:?}");
        vec![Decided::unchecked(note, &rules)]
    }))
}

/// The arguments of the check.
fn check_args(args: &SubmitArgs) -> Result<CheckArgs, CliError> {
    let words = ["xmem", "check", "--format", "slurm", "--slurm-options", "-"];
    match crate::parse(words.map(Into::into)).map(|cli| cli.command) {
        Ok(Command::Check(mut check)) => {
            check.settings = args.settings.clone();
            Ok(*check)
        }
        _ => {
            let message = "`xmem check` does not take its own options".to_owned();
            Err(InternalError::new(None, Panicked { message }).into())
        }
    }
}

/// Replaces this process by the command.
#[cfg(unix)]
fn execute(command: &[String]) -> SubmitFailure {
    use std::os::unix::process::CommandExt as _;
    let (program, arguments) = command.split_first().expect("clap requires a command");
    let source = std::process::Command::new(program).args(arguments).exec();
    SubmitFailure::Execute { program: program.clone(), source }
}

#[cfg(not(unix))]
fn execute(command: &[String]) -> SubmitFailure {
    let source = std::io::Error::new(std::io::ErrorKind::Unsupported, "not on this system");
    SubmitFailure::Execute { program: command.join(" "), source }
}
