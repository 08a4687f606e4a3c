//! An overlay: the private folder, and how a command is started so that its writes go there.

use crate::coverage::{Coverage, Writable};
use crate::kept::Kept;
use crate::{attempt, preload};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_tempfiles::{FolderError, PrivateFolder, write_private};

/// The variables of the preloaded library.
const FOLDER: &str = "XMEM_OVERLAY";
const UNCOVERED: &str = "XMEM_OVERLAY_PASS";
const COVERED: &str = "XMEM_OVERLAY_KEEP";

/// The file of the preloaded library.
const LIBRARY: &str = "libxmem-overlay.so";

/// In the folder of an overlay: what the process does that becomes the command.
pub(crate) const PLAN: &str = "plan";
/// In the folder of an overlay: one folder for each layer.
pub(crate) const LAYERS: &str = "layers";
/// In the folder of an overlay: the error number of a command that cannot be run.
pub(crate) const NOT_RUN: &str = "not-run";

/// How writes are kept out of the user's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// They are not: the user wants them to pass.
    Off,
    /// By a mount namespace, which this program enters.
    Namespace(PathBuf),
    /// By a preloaded library, and this program has the kernel refuse what the library does not see.
    Preload(Option<PathBuf>),
    /// Neither can be had here, for these reasons.
    Unavailable(String),
}

/// The wish for a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The surest that works here.
    #[default]
    Auto,
    /// A mount namespace or none.
    Namespace,
    /// The preloaded library or none.
    Preload,
}

/// The reason why an overlay cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OverlayError {
    /// No private folder can be made.
    #[error("no folder for what the command writes")]
    Folder(#[source] FolderError),
    /// A file in the private folder cannot be written.
    #[error("cannot write to the folder for what the command writes")]
    File(#[source] io::Error),
}

/// The overlay of one command. What was kept is removed when this is dropped.
#[derive(Debug)]
pub struct Overlay {
    folder: PrivateFolder,
    method: Method,
    coverage: Coverage,
}

impl Overlay {
    /// Prepares an overlay for a command in the present working folder, by the surest method that works here.
    ///
    /// `helper` is a program that calls [`enter`](crate::enter) if its first argument is [`ENTER`](crate::ENTER),
    /// followed by the path of a plan and the command; without one, there is no namespace.
    ///
    /// # Errors
    /// If no private folder can be made.
    pub fn prepare(
        command: (&OsStr, &[OsString]),
        writable: &Writable,
        choice: Choice,
        helper: Option<&Path>,
    ) -> Result<Self, OverlayError> {
        let Writable::Paths(writable) = writable else {
            let folder = PrivateFolder::for_programs().map_err(OverlayError::Folder)?;
            return Ok(Self { folder, method: Method::Off, coverage: Coverage::default() });
        };
        let temporary = real(&std::env::temp_dir());
        let writable: Vec<PathBuf> = writable.iter().map(|path| real(path)).collect();
        let job = job(command);
        let coverage = |folder: &PrivateFolder| {
            Coverage::new(&job, &temporary, &[real(folder.path())], &writable)
        };
        let for_namespace = helper.filter(|_| choice != Choice::Preload);
        let reason = match for_namespace.map(|helper| attempt::namespace(helper, &job, coverage)) {
            Some(Ok((helper, folder, coverage))) => {
                return Ok(Self { folder, method: Method::Namespace(helper), coverage });
            }
            Some(Err(reason)) => reason,
            None => "no program to enter a mount namespace".to_owned(),
        };
        let folder = PrivateFolder::for_programs().map_err(OverlayError::Folder)?;
        let coverage = coverage(&folder);
        let library = preload::LIBRARY.filter(|_| choice != Choice::Namespace);
        let method = match library {
            Some(library) => {
                write_private(&folder.path().join(LIBRARY), library).map_err(OverlayError::File)?;
                Method::Preload(
                    helper.and_then(|helper| attempt::guard(helper, &folder, &coverage)),
                )
            }
            None => Method::Unavailable(reason),
        };
        tracing::debug!(target: "xmem::overlay", ?method, "writes are kept out of the user's files");
        Ok(Self { folder, method, coverage })
    }

    /// How writes are kept.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// A folder that the command can write to, and the caller reads.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// True if what is written to this path is kept out of the user's files.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        !matches!(self.method, Method::Off) && self.coverage.covers(path)
    }

    /// The command, ready to be started. Where a namespace is entered first, a program that cannot be started is
    /// found by [`not_started`](Self::not_started) after its end.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn command(&self, program: &OsStr, arguments: &[OsString]) -> io::Result<Command> {
        let (Method::Namespace(helper) | Method::Preload(Some(helper))) = &self.method else {
            let mut command = Command::new(program);
            command.args(arguments);
            return Ok(command);
        };
        find(program)?;
        let mut command = Command::new(helper);
        command
            .arg(crate::ENTER)
            .arg(self.folder().join(PLAN))
            .arg("--")
            .arg(program)
            .args(arguments);
        Ok(command)
    }

    /// The system's reason for not starting the program, once the process of [`command`](Self::command) has ended.
    #[must_use]
    pub fn not_started(&self) -> Option<io::Error> {
        let number = std::fs::read_to_string(self.folder().join(NOT_RUN)).ok()?;
        number.trim().parse().ok().map(io::Error::from_raw_os_error)
    }

    /// Variables of the command; `present` looks one up in the environment of this process.
    #[must_use]
    pub fn environment(
        &self,
        present: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        if !matches!(self.method, Method::Preload(_)) {
            return Vec::new();
        }
        let mut preload = self.folder().join(LIBRARY).into_os_string();
        if let Some(others) = present("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let list = |paths: &std::collections::BTreeSet<PathBuf>| {
            let escaped: Vec<String> = paths.iter().map(|path| escaped(path)).collect();
            OsString::from(escaped.join(":"))
        };
        vec![
            ("LD_PRELOAD", preload),
            (FOLDER, self.folder().into()),
            (UNCOVERED, list(&self.coverage.uncovered)),
            (COVERED, list(&self.coverage.covered)),
        ]
    }

    /// What the command wrote so far.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let mut kept = Kept::default();
        match &self.method {
            Method::Namespace(_) => {
                let layers = std::fs::read_dir(self.folder().join(LAYERS));
                for layer in layers.into_iter().flatten().flatten() {
                    // The one that only shows whether overlays work here.
                    if layer.file_name() != "check" {
                        kept.add(&layer.path().join("upper"));
                    }
                }
            }
            Method::Preload(_) => {
                kept.add(&self.folder().join("upper"));
                // A byte for each.
                let removed = std::fs::metadata(self.folder().join("removed"));
                kept.removed += removed.map_or(0, |file| file.len());
            }
            Method::Off | Method::Unavailable(_) => {}
        }
        kept
    }
}

/// The paths that a job surely uses: its working folder, and what its words name.
fn job((program, arguments): (&OsStr, &[OsString])) -> Vec<PathBuf> {
    let words = std::iter::once(program).chain(arguments.iter().map(OsString::as_os_str));
    // Also `--output=runs`.
    let named = words.flat_map(|word| {
        let text = word.to_str().and_then(|text| text.split_once('='));
        [Some(Path::new(word)), text.map(|(_, value)| Path::new(value))]
    });
    let mut paths: Vec<PathBuf> = named.flatten().filter(|path| path.exists()).map(real).collect();
    paths.extend(std::env::current_dir().map(|folder| real(&folder)));
    paths
}

/// A path without symbolic links, absolute.
pub(crate) fn real(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Finds the program as a shell would.
fn find(program: &OsStr) -> io::Result<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.metadata().map(|_| path.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let found = std::env::split_paths(&folders).map(|folder| folder.join(path));
    let mut found = found.filter(|path| path.is_file());
    // As the system has it (ENOENT).
    found.next().ok_or_else(|| io::Error::from_raw_os_error(2))
}

/// A path in a list that is separated by colons.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace(':', "%3A")
}
