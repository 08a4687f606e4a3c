//! The choice of a source, and its settings from the environment.

use crate::earlier_answers::CachedAnswers;
use crate::library::Cudnn;
use crate::process::{CHOICE_VARIABLE, WorkerCommand};
use crate::search::{self, SYSTEM_LIBRARIES, SearchPath};
use crate::trust::{self, Caller, Distrust};
use crate::used;
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

/// The origin of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChoiceOrigin {
    /// The caller, who may name a library that other users can change.
    #[default]
    Caller,
    /// The environment, which someone else may have set.
    Environment,
}

/// The use of a library that is found, rather than named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FoundLibrary {
    /// It is loaded, if only root and the caller can change it.
    #[default]
    Load,
    /// It is not loaded.
    Refuse,
}

/// The settings from which a source is made.
#[derive(Clone, Debug, Default)]
pub struct SourceSettings {
    /// The choice.
    pub choice: SourceChoice,
    /// The origin of the choice.
    pub choice_origin: ChoiceOrigin,
    /// The use of a library that is found.
    pub found: FoundLibrary,
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
    /// Other users can change the library, or its path comes from the environment of root.
    #[error("refusing to load cuDNN at {}: {reason}", .path.display())]
    Refused {
        /// The library, or the folder of cached answers.
        path: PathBuf,
        /// The reason, and what helps.
        reason: String,
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
    /// if it is `xmem`, else the first `xmem` on `PATH` that only root and the caller can change.
    ///
    /// The environment of root may be that of another user. So root loads no library that is found
    /// ([`FoundLibrary::Refuse`]), has no cache, and finds no worker on `PATH`.
    #[must_use]
    pub fn from_environment() -> Self {
        let is_root = Caller::current().is_root();
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
        let programs = if is_root { &[][..] } else { &search.programs };
        Self {
            choice: SourceChoice::from(text(CHOICE_VARIABLE).as_str()),
            choice_origin: ChoiceOrigin::Environment,
            found: if is_root { FoundLibrary::Refuse } else { FoundLibrary::Load },
            worker: worker(env::current_exe().ok(), programs),
            cache: cache.filter(|_| !is_root).map(|cache| cache.join("xmem")),
            search,
        }
    }

    /// The chosen source. A library that is named is opened at once; one that is found starts its
    /// process with the first question.
    ///
    /// A library that other users can change is used only if the caller names it and is not root; the
    /// answers then have a [doubt](xmem_convolutions::ConvolutionAnswers::doubt).
    ///
    /// # Errors
    /// If a path names no library, or a library cannot be used or is refused.
    pub fn source(&self) -> Result<Arc<dyn ConvolutionSource>, SourceError> {
        match &self.choice {
            SourceChoice::Model => Ok(Arc::new(FittedModel)),
            SourceChoice::NoWorkspaces => Ok(Arc::new(NoWorkspaces)),
            SourceChoice::Automatic => match search::find(&self.search) {
                Some(library) => Ok(Arc::new(self.found_library(library)?)),
                None => Ok(Arc::new(FittedModel)),
            },
            SourceChoice::At(path) => {
                let caller = Caller::current();
                if let Some(answers) = CachedAnswers::at(path) {
                    let distrust = trust::answers(path, caller).err();
                    let doubt = self.doubt(path, distrust)?;
                    return Ok(Arc::new(answers.with_doubt(doubt)));
                }
                let library =
                    search::at(path).ok_or_else(|| SourceError::NotFound { path: path.clone() })?;
                let (library, distrust) = match trust::library(&library, caller) {
                    Ok(library) => (library, None),
                    Err(distrust) => (library, Some(distrust)),
                };
                self.check_for_root(&library, caller, distrust.as_ref())?;
                let doubt = self.doubt(&library, distrust)?;
                let cudnn = self.library(library.clone())?.with_doubt(doubt);
                cudnn.open().map_err(|reason| SourceError::Unusable { library, reason })?;
                Ok(Arc::new(cudnn))
            }
        }
    }

    /// The library that was found, if it may be loaded.
    fn found_library(&self, library: PathBuf) -> Result<Cudnn, SourceError> {
        let refused = |reason: String| SourceError::Refused {
            reason: format!(
                "{reason}; `--cudnn {}` loads it, `--cudnn model` needs no library",
                library.display()
            ),
            path: library.clone(),
        };
        if self.found == FoundLibrary::Refuse {
            return Err(refused("root loads no library that is found in the environment".into()));
        }
        let checked = trust::library(&library, Caller::current());
        self.library(checked.map_err(|distrust| refused(with_remedy(&distrust)))?)
    }

    /// The library that a recording names, if a job of this user was recorded with it on this machine, it is
    /// still there, and only root and the caller can change it. Root loads none.
    pub(crate) fn recorded_library(&self, path: &Path) -> Option<Cudnn> {
        let path = &at_home(path, env::home_dir());
        if self.found == FoundLibrary::Refuse || !used::is_listed(self.cache.as_deref()?, path) {
            return None;
        }
        self.library(trust::library(path, Caller::current()).ok()?).ok()
    }

    /// The library to ask about a job that has just been recorded, and lists it for [later](Self::source): the
    /// one that was chosen, else `recorded`, the one that the job was recorded with, else one that is found.
    /// The user who records a job runs the code of its environment, so that root asks its library, too.
    ///
    /// `None` if another source was chosen, there is no library, or other users can change it.
    #[must_use]
    pub fn library_of_recording(&self, recorded: Option<&Path>) -> Option<Cudnn> {
        let caller = Caller::current();
        let recorded = recorded.map(|path| at_home(path, env::home_dir()));
        let recorded = recorded.as_deref();
        let path = match (&self.choice, recorded) {
            (SourceChoice::Model | SourceChoice::NoWorkspaces, _) => return None,
            (SourceChoice::At(path), _) => {
                let path = search::at(path)?;
                self.check_for_root(&path, caller, None).ok()?;
                path
            }
            (SourceChoice::Automatic, Some(recorded)) => recorded.to_path_buf(),
            (SourceChoice::Automatic, None) if self.found == FoundLibrary::Refuse => return None,
            (SourceChoice::Automatic, None) => search::find(&self.search)?,
        };
        let library = trust::library(&path, caller).ok()?;
        if let (Some(folder), Some(recorded)) = (&self.cache, recorded)
            && let Err(error) = used::list(folder, recorded)
        {
            tracing::warn!(%error, "cannot list the cuDNN library of the recording");
        }
        self.library(library).ok()
    }

    /// Checks what root must not do: run code that another user has named, or can change.
    fn check_for_root(
        &self,
        library: &Path,
        caller: Caller,
        distrust: Option<&Distrust>,
    ) -> Result<(), SourceError> {
        let reason = match distrust {
            _ if !caller.is_root() => return Ok(()),
            _ if self.choice_origin == ChoiceOrigin::Environment => format!(
                "root loads no library that the environment names ({CHOICE_VARIABLE}); name it with \
                 `--cudnn`"
            ),
            Some(distrust) => {
                format!("{}; root loads only what no other user can change", with_remedy(distrust))
            }
            None => return Ok(()),
        };
        Err(SourceError::Refused { path: library.to_path_buf(), reason })
    }

    /// The doubt about what is at a path that is named; an error if the environment names it.
    fn doubt(
        &self,
        path: &Path,
        distrust: Option<Distrust>,
    ) -> Result<Option<String>, SourceError> {
        let Some(distrust) = distrust else { return Ok(None) };
        let reason = with_remedy(&distrust);
        match self.choice_origin {
            ChoiceOrigin::Caller => Ok(Some(format!(
                "other users can change the source of the workspaces of convolutions, {}: {reason}",
                path.display(),
            ))),
            ChoiceOrigin::Environment => {
                let reason = format!(
                    "{reason}; {CHOICE_VARIABLE} names it, and only `--cudnn` loads such a library"
                );
                Err(SourceError::Refused { path: path.to_path_buf(), reason })
            }
        }
    }

    fn library(&self, library: PathBuf) -> Result<Cudnn, SourceError> {
        match &self.worker {
            Some(worker) => Ok(Cudnn::new(library, worker.clone(), self.cache.clone())),
            None => Err(SourceError::Unusable {
                library,
                reason: "no `xmem` on PATH to run it in a separate process".to_owned(),
            }),
        }
    }
}

fn with_remedy(distrust: &Distrust) -> String {
    match distrust.remedy() {
        Some(remedy) => format!("{distrust}; {remedy} ends that"),
        None => distrust.to_string(),
    }
}

/// `xmem` with the command [`WORKER`]: `this` program if it is called so, else the first on the path.
fn worker(this: Option<PathBuf>, programs: &[PathBuf]) -> Option<WorkerCommand> {
    let name = format!("xmem{EXE_SUFFIX}");
    let this = this.filter(|this| this.file_name().is_some_and(|file| file == name.as_str()));
    let program = this.or_else(|| {
        let caller = Caller::current();
        let programs = programs.iter().map(|folder| folder.join(&name));
        programs
            .filter(|program| is_executable(program))
            .find(|program| trust::file(program, caller).is_ok())
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

/// The path of a library in a recording, which has the user's home as `~`.
fn at_home(path: &Path, home: Option<PathBuf>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
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

    #[test]
    fn a_library_below_the_home_is_named_without_the_user() {
        for (recorded, expected) in [
            ("~/venv/libcudnn.so.9", "/home/me/venv/libcudnn.so.9"),
            ("/opt/libcudnn.so.9", "/opt/libcudnn.so.9"),
            ("/opt/~/libcudnn.so.9", "/opt/~/libcudnn.so.9"),
        ] {
            let path = at_home(Path::new(recorded), Some("/home/me".into()));
            assert_eq!(path, Path::new(expected), "{recorded}");
        }
    }
}
