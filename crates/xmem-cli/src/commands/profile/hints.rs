//! Commands that were hardly meant: what to type instead, before anything runs.

use super::error::ProfileFailure;
use crate::error::CliError;
use std::ffi::OsString;
use std::path::Path;

/// Refuses a program where a device is expected, and a script where a command is.
pub(crate) fn before(device: &str, command: &[OsString]) -> Result<(), CliError> {
    if let Err(error) = xmem::find(device) {
        let is_command = is_program(Path::new(device));
        return Err(match is_command {
            true => ProfileFailure::ProgramAsDevice {
                program: device.to_owned(),
                words: words(command),
            }
            .into(),
            false => error.into(),
        });
    }
    let Some(program) = command.first().map(Path::new) else { return Ok(()) };
    let is_script = program.extension().is_some_and(|extension| extension == "py");
    if is_script && !is_program(program) {
        return Err(ProfileFailure::ScriptWithoutPython {
            script: program.to_owned(),
            words: words(command),
        }
        .into());
    }
    Ok(())
}

/// A command as a shell takes it.
fn words(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    shlex::try_join(words.iter().map(AsRef::as_ref)).unwrap_or_else(|_| words.join(" "))
}

/// Returns whether a shell would run the file: it is executable, and named by a path or found on `PATH`.
#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_executable = |file: &Path| {
        file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if file.components().count() > 1 {
        return is_executable(file);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_executable(&folder.join(file)))
}

#[cfg(not(unix))]
fn is_program(_: &Path) -> bool {
    false
}
