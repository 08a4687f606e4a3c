//! The user's Python environment: where torch is, and where the libraries of CUDA are that it links.

use crate::family::Family;
use crate::kernels::Kernels;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xmem_elf::Library;
use xmem_types::printable;

/// A Python environment with PyTorch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Environment {
    /// The folder of the package `torch`.
    torch: PathBuf,
    /// Folders that Python imports packages from.
    packages: Vec<PathBuf>,
    /// Further folders of libraries, in the order of the search.
    libraries: Vec<PathBuf>,
}

/// The reason why an environment cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// Python cannot be started.
    #[error("cannot start `{}`", .python.display())]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// Python has no torch.
    #[error("`{}` has no package `torch`: {reason}", .python.display())]
    NoTorch {
        /// The interpreter.
        python: PathBuf,
        /// The last line that Python wrote.
        reason: String,
    },
    /// A build of PyTorch for other devices.
    #[error(
        "`{}` is not a build of PyTorch for CUDA (it has no libtorch_cuda.so): install one, its \
         libraries are used without a GPU",
        .0.display()
    )]
    NotForCuda(PathBuf),
}

/// Prints where torch is and what Python imports packages from, without importing torch. Each line has a
/// mark, as a `sitecustomize` module may print, too.
const QUESTION: &str = "
import importlib.util, sys
spec = importlib.util.find_spec('torch')
if spec is None or not spec.submodule_search_locations: sys.exit('no module named torch')
print('xmem-torch=' + list(spec.submodule_search_locations)[0])
for path in sys.path: print('xmem-path=' + path)
print('xmem-prefix=' + sys.prefix)
";

/// Folders of the CUDA toolkit on common systems.
const TOOLKIT: [&str; 2] = ["/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"];

impl Environment {
    /// The environment of an interpreter, which is started to ask it. It is found as the shell would find it.
    ///
    /// # Errors
    /// If it cannot be started, or has no torch.
    pub fn of_python(python: &Path) -> Result<Self, EnvironmentError> {
        let python = python.to_path_buf();
        let output = Command::new(&python)
            .args(["-c", QUESTION])
            .stdin(Stdio::null())
            .output()
            .map_err(|source| EnvironmentError::Start { python: python.clone(), source })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let all = |mark: &str| -> Vec<PathBuf> {
            let found = text.lines().filter_map(|line| line.strip_prefix(mark));
            found.filter(|path| !path.is_empty()).map(PathBuf::from).collect()
        };
        let Some(torch) = all("xmem-torch=").pop() else {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().last().unwrap_or("it gave no reason");
            let reason = printable(last).into_owned();
            return Err(EnvironmentError::NoTorch { python, reason });
        };
        let libraries = all("xmem-prefix=").iter().map(|prefix| prefix.join("lib")).collect();
        Ok(Self { torch, packages: all("xmem-path="), libraries })
    }

    /// The environment with torch in this folder, and with packages in these.
    #[must_use]
    pub fn new(torch: PathBuf, packages: Vec<PathBuf>) -> Self {
        Self { torch, packages, libraries: Vec::new() }
    }

    /// The environment with further folders of libraries: those of `LD_LIBRARY_PATH`, and the toolkit's
    /// (`CUDA_HOME`).
    #[must_use]
    pub fn with_libraries(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.libraries.extend(folders);
        self
    }

    /// The folder of the package `torch`.
    #[must_use]
    pub fn torch(&self) -> &Path {
        &self.torch
    }

    /// The package and its version, such as `PyTorch 2.11.0+cu130`.
    pub(crate) fn torch_version(&self) -> String {
        let text = fs::read_to_string(self.torch.join("version.py")).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix("__version__ = "));
        let version = value.unwrap_or_default().trim_matches(['\'', '"']);
        format!("PyTorch {}", printable(version)).trim_end().to_owned()
    }

    /// What PyTorch's kernels were compiled for, where that is known.
    pub(crate) fn kernels(&self) -> Option<Kernels> {
        Kernels::of(&self.torch.join("lib/libtorch_cuda.so"))
    }

    /// All libraries that need a stand-in.
    ///
    /// # Errors
    /// If torch has no CUDA.
    pub(crate) fn requirements(&self) -> Result<Requirements, EnvironmentError> {
        let own = self.torch.join("lib");
        if !own.join("libtorch_cuda.so").exists() {
            return Err(EnvironmentError::NotForCuda(self.torch.clone()));
        }
        let mut requirements = Requirements::default();
        let mut folders: Vec<PathBuf> = Vec::new();
        for path in libraries_in(&own) {
            let Some(library) = read(&path) else { continue };
            for folder in &library.search {
                let origin = own.to_string_lossy();
                let folder = folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
                folders.push(folder.into());
            }
            requirements.add(&library);
            // A wheel may carry libraries of CUDA along, as files whose names have a hash.
            if let Some(name) = library.name.filter(|name| Family::of(name).is_some()) {
                requirements.files.insert(name.clone(), path);
                requirements.names.insert(name);
            }
        }
        folders.push(own);
        folders.extend(self.packages.iter().flat_map(|site| nvidia_folders(&site.join("nvidia"))));
        folders.extend(self.libraries.iter().cloned());
        folders.extend(TOOLKIT.map(PathBuf::from));
        let mut seen = BTreeSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        for name in &requirements.names {
            let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
            if let Some(path) = found {
                requirements.files.entry(name.clone()).or_insert(path);
            }
        }
        requirements.versions = self.versions();
        Ok(requirements)
    }

    /// Versions of NVIDIA's packages, by the package's name without that of CUDA's version.
    fn versions(&self) -> BTreeMap<String, String> {
        let mut versions = BTreeMap::new();
        for site in &self.packages {
            for path in entries(site) {
                let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                let package =
                    name.strip_prefix("nvidia_").and_then(|n| n.strip_suffix(".dist-info"));
                let Some((package, version)) = package.and_then(|p| p.split_once('-')) else {
                    continue;
                };
                let package = match package.rsplit_once("_cu") {
                    Some((package, cuda)) if cuda.parse::<u8>().is_ok() => package,
                    _ => package,
                };
                versions.entry(package.to_owned()).or_insert_with(|| version.to_owned());
            }
        }
        versions
    }
}

/// What an environment's libraries need of CUDA.
#[derive(Debug, Default)]
pub(crate) struct Requirements {
    /// Names of libraries that need a stand-in (`DT_NEEDED`).
    pub(crate) names: BTreeSet<String>,
    /// Files of those that were found.
    pub(crate) files: BTreeMap<String, PathBuf>,
    /// Functions that torch's libraries need others to define.
    pub(crate) functions: BTreeSet<String>,
    /// Versions of NVIDIA's packages (`cuda_runtime`: `12.4.127`).
    pub(crate) versions: BTreeMap<String, String>,
}

impl Requirements {
    fn add(&mut self, library: &Library) {
        self.names.extend(library.needed.iter().filter(|n| Family::of(n).is_some()).cloned());
        self.functions.extend(library.imports.iter().cloned());
    }

    /// The name of the library of this family that torch needs.
    pub(crate) fn name(&self, family: Family) -> Option<&str> {
        self.names.iter().map(String::as_str).find(|name| Family::of(name) == Some(family))
    }
}

/// The tables of a library; nothing if it cannot be read.
pub(crate) fn read(path: &Path) -> Option<Library> {
    Library::read(BufReader::new(File::open(path).ok()?)).ok()
}

/// The content of a folder, in an order that does not depend on the file system.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The shared libraries in a folder.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let is_library = |path: &PathBuf| {
        path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.contains(".so"))
    };
    entries(folder).into_iter().filter(is_library).collect()
}

/// The folders of libraries of NVIDIA's packages: `nvidia/cublas/lib`, and `nvidia/cu13/lib` since CUDA 13.
fn nvidia_folders(nvidia: &Path) -> Vec<PathBuf> {
    entries(nvidia).into_iter().map(|p| p.join("lib")).filter(|path| path.is_dir()).collect()
}
