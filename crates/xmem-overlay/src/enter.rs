//! The process that becomes the command.

use crate::overlay::NOT_RUN;
use crate::plan::{self, Preparation};
use crate::{guard, namespace};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Prepares what `plan` says, and becomes the command; with none, returns an empty text. The text is the reason of a
/// failure.
pub(crate) fn enter(plan: &Path, command: &[OsString]) -> String {
    let folder = plan::folder_of(plan);
    let text = match fs::read(plan) {
        Ok(text) => text,
        Err(error) => return format!("cannot read the plan: {error}"),
    };
    let Some((preparation, coverage)) = plan::read(&text) else {
        return "the plan is not one of this release".to_owned();
    };
    let prepared = match preparation {
        Preparation::Namespace { may_have_users } => {
            namespace::enter(folder, &coverage, may_have_users)
        }
        Preparation::Guard => guard::restrict(folder, &coverage),
    };
    if let Err(reason) = prepared {
        return reason;
    }
    let Some((program, arguments)) = command.split_first() else { return String::new() };
    let error = Command::new(program).args(arguments).exec();
    // The caller says what is wrong, as if it had started the command itself.
    let number = error.raw_os_error().unwrap_or(0).to_string();
    let _ = fs::write(folder.join(NOT_RUN), number);
    format!("cannot run `{}`: {error}", Path::new(program).display())
}
