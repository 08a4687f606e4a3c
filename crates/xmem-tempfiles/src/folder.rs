//! A private temporary folder.

use crate::leftovers::{self, Kind};
use crate::name::{Maker, RANDOM};
use crate::place::{self, Unsuitable};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file system in memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// A folder that only its owner can open, removed when this is dropped. What is made in it with
/// [`write_private`](crate::write_private) and [`create_private_folder`](crate::create_private_folder)
/// has no permissions for others either, whatever the umask.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    identity: Option<Identity>,
}

/// The device and inode of a folder, which tell it from another one at the same path.
type Identity = (u64, u64);

/// The reason why no private folder can be made.
#[derive(Debug)]
pub struct FolderError {
    /// All places that were tried, each with the reason.
    places: Vec<(PathBuf, String)>,
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (place, reason)) in self.places.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}`{}`: {reason}", place.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for FolderError {}

impl From<FolderError> for io::Error {
    fn from(error: FolderError) -> Self {
        Self::other(error)
    }
}

impl PrivateFolder {
    /// Makes a folder in memory if possible, else in the folder for temporary files (`TMPDIR`), and removes
    /// those of processes that were killed.
    ///
    /// # Errors
    /// If no place is writable, or other users could replace the folder there.
    pub fn new() -> Result<Self, FolderError> {
        Self::in_first(places(), place::check)
    }

    /// Makes such a folder where programs and libraries can be run, and with a path that `LD_PRELOAD` can hold: in the folder for temporary files if
    /// possible, else in memory, which is often mounted without this right.
    ///
    /// # Errors
    /// If there is no such place, or for the reasons of [`new`](Self::new).
    pub fn for_programs() -> Result<Self, FolderError> {
        Self::in_first(places().into_iter().rev().collect(), place::check_for_programs)
    }

    fn in_first(
        places: Vec<PathBuf>,
        check: impl Fn(&Path) -> Result<PathBuf, Unsuitable>,
    ) -> Result<Self, FolderError> {
        let mut failed = Vec::new();
        let mut made = None;
        for place in places {
            match check(&place) {
                Ok(place) => {
                    leftovers::remove(&place, Kind::Folders);
                    if made.is_none() {
                        match new_in(&place) {
                            Ok(folder) => made = Some(folder),
                            Err(error) => failed.push((place, error.to_string())),
                        }
                    }
                }
                Err(unsuitable) => failed.push((place, unsuitable.to_string())),
            }
        }
        let folder = made.ok_or(FolderError { places: failed })?;
        let identity = identity(folder.path());
        Ok(Self { folder, identity })
    }

    /// Its absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for PrivateFolder {
    /// Keeps what another process has put in the place of the folder.
    fn drop(&mut self) {
        if identity(self.path()) != self.identity {
            self.folder.disable_cleanup(true);
        } else {
            leftovers::open_folders(self.path());
        }
    }
}

/// The places to try, in this order.
fn places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from(SHARED_MEMORY), std::env::temp_dir()];
    if cfg!(not(unix)) {
        places.remove(0);
    }
    places
}

fn new_in(place: &Path) -> io::Result<TempDir> {
    let prefix = Maker::current().to_string();
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(place)
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<Identity> {
    None
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Open(folder) => write!(
                f,
                "other users can replace the files in `{}`, as its owner and mode show",
                folder.display()
            ),
            Self::Space => {
                write!(f, "its path has a space, which LD_PRELOAD cannot hold")
            }
            Self::NoExecution => {
                write!(f, "programs cannot be run from it (it is mounted with noexec)")
            }
            Self::Colon => write!(f, "the path has a colon, which PYTHONPATH cannot hold"),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn a_folder_is_private_and_removed_with_its_content() {
        let folder = PrivateFolder::new().expect("made");
        let path = folder.path().to_owned();
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        crate::write_private(&path.join("file"), b"text").expect("written");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_is_removed_with_closed_folders_in_it() {
        let folder = PrivateFolder::new().expect("made");
        let path = folder.path().to_owned();
        std::fs::create_dir_all(path.join("layer/closed/inner")).expect("made");
        for (name, mode) in [("layer/closed/inner", 0o500), ("layer/closed", 0o000)] {
            std::fs::set_permissions(path.join(name), Permissions::from_mode(mode)).expect("set");
        }
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_place_that_others_can_change_is_passed_over_and_named() {
        let root = tempfile::tempdir().expect("a folder");
        let [open, closed] = ["open", "closed"].map(|name| root.path().join(name));
        for (path, mode) in [(&open, 0o777), (&closed, 0o700)] {
            std::fs::create_dir(path).expect("made");
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        }
        let folder = PrivateFolder::in_first(vec![open.clone(), closed.clone()], place::check)
            .expect("made");
        assert!(folder.path().starts_with(closed.canonicalize().expect("there")));
        let error =
            PrivateFolder::in_first(vec![open, "/no/such/folder".into()], place::check).map(drop);
        let text = error.expect_err("no place").to_string();
        assert!(text.contains("open`: other users can replace the files in `"), "{text}");
        assert!(text.contains("; `/no/such/folder`: No such file"), "{text}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_place_where_programs_cannot_be_run_is_not_one_for_programs() {
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("there");
        let mounted_at = |line: &str| line.split(' ').nth(1).map(str::to_owned);
        for line in mounts.lines() {
            let at = mounted_at(line).expect("a path");
            let times =
                mounts.lines().filter(|&other| mounted_at(other).as_ref() == Some(&at)).count();
            if times == 1 && Path::new(&at).is_dir() {
                let options = line.split(' ').nth(3).expect("options");
                let expected = options.split(',').any(|option| option == "noexec");
                assert_eq!(place::forbids_execution(Path::new(&at)), expected, "{line}");
            }
        }
        let folder = PrivateFolder::for_programs().expect("made");
        let program = folder.path().join("program");
        let copied = Command::new("cp").arg("/bin/false").arg(&program).status();
        assert!(copied.expect("it runs").success());
        let status = Command::new(&program).status().expect("it runs");
        assert_eq!(status.code(), Some(1));
    }

    #[test]
    fn a_folder_that_was_put_in_its_place_is_kept() {
        let root = tempfile::tempdir().expect("a folder");
        let folder =
            PrivateFolder::in_first(vec![root.path().to_owned()], place::check).expect("made");
        let path = folder.path().to_owned();
        std::fs::rename(&path, root.path().join("moved")).expect("moved");
        std::fs::create_dir(&path).expect("made");
        std::fs::write(path.join("precious"), "").expect("written");
        drop(folder);
        assert!(path.join("precious").exists());
    }
}
