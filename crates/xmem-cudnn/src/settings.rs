//! The choice of a source, and its settings from the environment.

use crate::cached::CachedAnswers;
use crate::library::Cudnn;
use crate::process::{CHOICE_VARIABLE, WorkerCommand};
use crate::search::{self, SYSTEM_LIBRARIES, SearchPath};
use std::env::{self, consts::EXE_SUFFIX};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xmem_convolutions::{ConvolutionSource, FittedModel, NoWorkspaces};

/// The command of `xmem` that calls [`serve`](crate::serve).
pub const WORKER: &str = "cudnn-worker";

/// A choice among the sources of convolution plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceChoice {
    /// A library that is found, else the fitted model.
    #[default]
    Automatic,
    /// The library there, or the cached answers.
    At(PathBuf),
    /// The fitted model.
    Model,
    /// No workspaces.
    NoWorkspaces,
}

impl From<&str> for SourceChoice {
    /// Reads `auto`, `model` or `none`; the empty text is `auto`, every other text a path.
    fn from(text: &str) -> Self {
        match text {
            "" | "auto" => Self::Automatic,
            "model" => Self::Model,
            "none" => Self::NoWorkspaces,
            path => Self::At(path.into()),
        }
    }
}

impl fmt::Display for SourceChoice {
    /// Writes the text from which the choice is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Automatic => f.write_str("auto"),
            Self::At(path) => path.display().fmt(f),
            Self::Model => f.write_str("model"),
            Self::NoWorkspaces => f.write_str("none"),
        }
    }
}

/// The settings from which a source is made.
#[derive(Clone, Debug, Default)]
pub struct SourceSettings {
    /// The choice.
    pub choice: SourceChoice,
    /// The folders to search for a library.
    pub search: SearchPath,
    /// The command that runs a library in a process of its own; `None` if there is no such program.
    pub worker: Option<WorkerCommand>,
    /// The folder for the answers of a library; `None` keeps them in memory only.
    pub cache: Option<PathBuf>,
}

/// The reason why a chosen library is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The path names no library and no folder of cached answers.
    #[error("no cuDNN library and no cached answers at `{}`", .path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// The library cannot be loaded or its process does not start.
    #[error("cannot query cuDNN at {}: {reason}", .library.display())]
    Unusable {
        /// The library.
        library: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl SourceSettings {
    /// The settings from the environment of this process: `XMEM_CUDNN`; `VIRTUAL_ENV`, `CONDA_PREFIX`, `PATH`, `HOME` and
    /// `LD_LIBRARY_PATH` to search; `XDG_CACHE_HOME` or `HOME` for the cache. The worker is this program
    /// if it is `xmem`, else the first `xmem` on `PATH`.
    #[must_use]
    pub fn from_environment() -> Self {
        let search = SearchPath {
            environments: ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(folder).collect(),
            programs: folders("PATH"),
            home: folder("HOME"),
            libraries: folders("LD_LIBRARY_PATH")
                .into_iter()
                .chain(SYSTEM_LIBRARIES.iter().map(PathBuf::from))
                .collect(),
        };
        let cache = folder("XDG_CACHE_HOME").or_else(|| Some(search.home.as_ref()?.join(".cache")));
        Self {
            choice: SourceChoice::from(text(CHOICE_VARIABLE).as_str()),
            worker: worker(env::current_exe().ok(), &search.programs),
            cache: cache.map(|cache| cache.join("xmem")),
            search,
        }
    }

    /// The chosen source. A library that is named is opened at once; one that is found starts its
    /// process with the first question.
    ///
    /// # Errors
    /// If a path names no library, or a library cannot be used.
    pub fn source(&self) -> Result<Arc<dyn ConvolutionSource>, SourceError> {
        match &self.choice {
            SourceChoice::Model => Ok(Arc::new(FittedModel)),
            SourceChoice::NoWorkspaces => Ok(Arc::new(NoWorkspaces)),
            SourceChoice::Automatic => match search::find(&self.search) {
                Some(library) => Ok(Arc::new(self.library(library)?)),
                None => Ok(Arc::new(FittedModel)),
            },
            SourceChoice::At(path) => {
                if let Some(answers) = CachedAnswers::at(path) {
                    return Ok(Arc::new(answers));
                }
                let library =
                    search::at(path).ok_or_else(|| SourceError::NotFound { path: path.clone() })?;
                let cudnn = self.library(library.clone())?;
                cudnn.open().map_err(|reason| SourceError::Unusable { library, reason })?;
                Ok(Arc::new(cudnn))
            }
        }
    }

    fn library(&self, library: PathBuf) -> Result<Cudnn, SourceError> {
        match &self.worker {
            Some(worker) => Ok(Cudnn::new(library, worker.clone(), self.cache.clone())),
            None => Err(SourceError::Unusable {
                library,
                reason: "no `xmem` on PATH to run it in a process of its own".to_owned(),
            }),
        }
    }
}

/// `xmem` with the command [`WORKER`]: `this` program if it is called so, else the first on the path.
fn worker(this: Option<PathBuf>, programs: &[PathBuf]) -> Option<WorkerCommand> {
    let name = format!("xmem{EXE_SUFFIX}");
    let this = this.filter(|this| this.file_name().is_some_and(|file| file == name.as_str()));
    let program = this.or_else(|| {
        programs.iter().map(|folder| folder.join(&name)).find(|program| is_executable(program))
    })?;
    Some(WorkerCommand { program, arguments: vec![WORKER.into()] })
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// The absolute folders of a variable that lists them.
fn folders(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    env::split_paths(&value).filter(|path| path.is_absolute()).collect()
}

/// The absolute folder of a variable.
fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The text of a variable; empty if it is not set or not Unicode.
fn text(variable: &str) -> String {
    env::var(variable).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_a_choice() {
        for (text, choice) in [
            ("", SourceChoice::Automatic),
            ("auto", SourceChoice::Automatic),
            ("model", SourceChoice::Model),
            ("none", SourceChoice::NoWorkspaces),
            ("/opt/venv", SourceChoice::At(PathBuf::from("/opt/venv"))),
        ] {
            assert_eq!(SourceChoice::from(text), choice, "{text}");
            if !text.is_empty() {
                assert_eq!(choice.to_string(), text);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_worker_is_this_xmem_or_the_first_executable_one_on_the_path() {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().expect("a folder");
        let path: Vec<PathBuf> =
            [("a", None), ("b", Some(0o644)), ("c", Some(0o755)), ("d", Some(0o755))]
                .into_iter()
                .map(|(name, mode)| {
                    let folder = root.path().join(name);
                    fs::create_dir(&folder).expect("created");
                    if let Some(mode) = mode {
                        let program = folder.join("xmem");
                        fs::write(&program, "").expect("written");
                        fs::set_permissions(&program, Permissions::from_mode(mode)).expect("set");
                    }
                    folder
                })
                .collect();
        let program = |this: &str, path: &[PathBuf]| {
            worker(Some(PathBuf::from(this)), path).map(|command| command.program)
        };
        assert_eq!(program("/usr/bin/xmem", &path), Some(PathBuf::from("/usr/bin/xmem")));
        assert_eq!(program("/usr/bin/python3", &path), Some(path[2].join("xmem")));
        assert_eq!(program("/usr/bin/python3", &path[..2]), None);
    }
}
