//! Outputs that name an input: the answer would replace what it is about.

mod error;

pub(crate) use error::OverwriteFailure;

use crate::terminal::shown;
use same_file::Handle;
use std::path::Path;

/// A file to write, with the option that names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output<'a> {
    pub(crate) option: &'static str,
    pub(crate) path: &'a Path,
}

impl<'a> Output<'a> {
    /// The outputs among options that may be missing.
    pub(crate) fn given<const N: usize>(
        options: [(&'static str, Option<&'a Path>); N],
    ) -> Vec<Self> {
        let given = options.into_iter();
        given.filter_map(|(option, path)| Some(Self { option, path: path? })).collect()
    }
}

/// Refuses outputs that are one of `inputs` under any name: another spelling of the path, a symbolic or hard
/// link, or standard input.
///
/// # Errors
/// If an output is an input, or another output.
pub(crate) fn refuse<'p>(
    outputs: &[Output<'_>],
    inputs: impl IntoIterator<Item = &'p Path>,
) -> Result<(), OverwriteFailure> {
    for (at, one) in outputs.iter().enumerate() {
        if let Some(other) = outputs[at + 1..].iter().find(|other| is_same(one.path, other.path)) {
            let (option, output) = (other.option, shown(other.path));
            return Err(OverwriteFailure::Output { option, output, first: one.option });
        }
    }
    let existing: Vec<(&Output<'_>, Handle)> =
        outputs.iter().filter_map(|output| Some((output, handle(output.path)?))).collect();
    if existing.is_empty() {
        return Ok(());
    }
    for input in inputs {
        let Some(handle) = handle(input) else { continue };
        if let Some((output, _)) = existing.iter().find(|(_, output)| *output == handle) {
            let input = crate::input::display_name(input);
            return Err(OverwriteFailure::Input {
                option: output.option,
                output: shown(output.path),
                input,
            });
        }
    }
    Ok(())
}

/// Returns whether two paths name the same file, which may be missing.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    match (handle(one), handle(other)) {
        (Some(one), Some(other)) => one == other,
        _ => match (place(one), place(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
    }
}

/// The identity of a regular file; `-` is standard input. Opening anything else may wait.
fn handle(path: &Path) -> Option<Handle> {
    if path == Path::new("-") {
        let stdin = Handle::stdin().ok()?;
        return stdin.as_file().metadata().ok()?.is_file().then_some(stdin);
    }
    let is_file = std::fs::metadata(path).ok()?.is_file();
    if is_file { Handle::from_path(path).ok() } else { None }
}

/// A path with a folder that exists.
fn place(path: &Path) -> Option<std::path::PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}
