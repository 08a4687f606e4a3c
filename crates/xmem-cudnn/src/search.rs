//! The search for a cuDNN library, without starting Python.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "libcudnn.so.9";

/// The folders to search, from the environment.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// Roots of the active virtual environments (`VIRTUAL_ENV`, `CONDA_PREFIX`).
    pub environments: Vec<PathBuf>,
    /// Folders of programs (`PATH`): beside a `python3` there is its `lib`.
    pub programs: Vec<PathBuf>,
    /// The home folder, for packages that `pip install --user` puts there.
    pub home: Option<PathBuf>,
    /// Folders of libraries (`LD_LIBRARY_PATH`, then [those of the system](SYSTEM_LIBRARIES)).
    pub libraries: Vec<PathBuf>,
}

/// Folders of libraries on common systems.
pub const SYSTEM_LIBRARIES: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
];

/// The first `libcudnn.so.9` in the active environments, the packages of the first `python3` on `PATH`,
/// those of the user, and the folders of libraries.
#[must_use]
pub fn find(path: &SearchPath) -> Option<PathBuf> {
    let python = path.programs.iter().filter(|p| p.join("python3").is_file()).map(|programs| {
        // A link leads to where Python is installed; the environment is where the link is.
        programs.parent().unwrap_or(programs).to_path_buf()
    });
    let mut roots: Vec<PathBuf> = path.environments.clone();
    roots.extend(python.take(1));
    roots.extend(path.home.iter().map(|home| home.join(".local")));
    let in_packages = roots.iter().find_map(|root| below(root));
    in_packages.or_else(|| path.libraries.iter().find_map(|folder| library(folder)))
}

/// The library that a path names: the file itself, or the library in that folder or that Python
/// environment.
#[must_use]
pub fn at(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_path_buf());
    }
    library(path).or_else(|| in_site(path)).or_else(|| below(path))
}

/// In the packages of an environment.
fn below(root: &Path) -> Option<PathBuf> {
    let lib = root.join("lib");
    let mut pythons: Vec<PathBuf> = fs::read_dir(&lib)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().and_then(OsStr::to_str).is_some_and(|n| n.starts_with("python3"))
        })
        .collect();
    // The newest first, and in an order that does not depend on the file system.
    pythons.sort_by_key(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let minor: u32 = name.trim_start_matches("python3.").parse().unwrap_or(0);
        (std::cmp::Reverse(minor), path.clone())
    });
    let sites = pythons.iter().flat_map(|p| ["site-packages", "dist-packages"].map(|s| p.join(s)));
    sites.into_iter().find_map(|site| in_site(&site)).or_else(|| library(&lib))
}

fn in_site(site: &Path) -> Option<PathBuf> {
    library(&site.join("nvidia/cudnn/lib"))
}

fn library(folder: &Path) -> Option<PathBuf> {
    let file = folder.join(FILE);
    file.is_file().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, "").expect("written");
        }
        folder
    }

    const PACKAGE: &str = "nvidia/cudnn/lib/libcudnn.so.9";

    #[test]
    fn the_active_environment_comes_first_then_python_then_libraries() {
        let venv = format!("venv/lib/python3.9/site-packages/{PACKAGE}");
        let newer = format!("venv/lib/python3.12/site-packages/{PACKAGE}");
        let debian = format!("usr/lib/python3/dist-packages/{PACKAGE}");
        let user = format!("home/.local/lib/python3.11/site-packages/{PACKAGE}");
        let files = ["usr/bin/python3", &venv, &newer, &debian, &user, "cuda/libcudnn.so.9"];
        let folder = tree(&files);
        let root = folder.path();
        let mut path = SearchPath {
            environments: vec![root.join("nothing"), root.join("venv")],
            programs: vec![root.join("cuda"), root.join("usr/bin")],
            home: Some(root.join("home")),
            libraries: vec![root.join("cuda")],
        };
        let found = |path: &SearchPath| {
            let path = find(path).expect("one of ours");
            path.strip_prefix(root).expect("below").to_str().expect("text").to_owned()
        };
        assert_eq!(found(&path), newer);
        path.environments.clear();
        assert_eq!(found(&path), debian);
        path.programs.clear();
        assert_eq!(found(&path), user);
        path.home = None;
        assert_eq!(found(&path), "cuda/libcudnn.so.9");
    }

    #[test]
    fn a_path_may_be_the_library_or_a_folder_around_it() {
        let site = "lib/python3.11/site-packages";
        let file = format!("{site}/{PACKAGE}");
        let folder = tree(&[&file]);
        let expected = Some(folder.path().join(&file));
        for path in ["", site, &format!("{site}/nvidia/cudnn/lib"), &file] {
            assert_eq!(at(&folder.path().join(path)), expected, "{path}");
        }
        assert_eq!(at(&folder.path().join("lib/python3.11")), None);
    }
}
