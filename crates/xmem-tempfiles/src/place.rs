//! Places for private folders.
//!
//! A folder is private only if no other user can rename or replace it: each folder above it must belong to
//! this user or to root, and be closed to others or sticky, so that they can remove only what is theirs.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why no private folder can be made in a place.
#[derive(Debug)]
pub(crate) enum Unsuitable {
    /// It does not exist or cannot be looked at.
    Io(io::Error),
    /// Another user can replace entries of this folder.
    Open(PathBuf),
    /// Its path has a colon, which separates the folders of search paths such as `PYTHONPATH`.
    Colon,
    /// Its path has a space, which separates the libraries of `LD_PRELOAD`.
    Space,
    /// It is mounted so that programs and libraries in it cannot be run (`noexec`).
    NoExecution,
}

/// The absolute path of `place`, if a folder there can be private.
pub(crate) fn check(place: &Path) -> Result<PathBuf, Unsuitable> {
    let place = std::fs::canonicalize(place).map_err(Unsuitable::Io)?;
    if place.as_os_str().as_encoded_bytes().contains(&b':') && cfg!(unix) {
        return Err(Unsuitable::Colon);
    }
    for folder in place.ancestors() {
        if !is_closed(folder).map_err(Unsuitable::Io)? {
            return Err(Unsuitable::Open(folder.to_owned()));
        }
    }
    Ok(place)
}

/// The same, if programs and libraries in the folder can be run and loaded.
pub(crate) fn check_for_programs(place: &Path) -> Result<PathBuf, Unsuitable> {
    match check(place)? {
        place if forbids_execution(&place) => Err(Unsuitable::NoExecution),
        place if place.as_os_str().as_encoded_bytes().contains(&b' ') => Err(Unsuitable::Space),
        place => Ok(place),
    }
}

/// True for a folder on a file system whose programs and libraries cannot be run (`noexec`).
#[must_use]
#[cfg(target_os = "linux")]
pub fn forbids_execution(folder: &Path) -> bool {
    use nix::sys::statvfs::{FsFlags, statvfs};
    statvfs(folder).is_ok_and(|status| status.flags().contains(FsFlags::ST_NOEXEC))
}

/// False: elsewhere than on Linux it is not known.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn forbids_execution(_folder: &Path) -> bool {
    false
}

#[cfg(unix)]
fn is_closed(folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(folder)?;
    let mode = metadata.mode();
    let is_sticky = mode & 0o1000 != 0;
    Ok(is_trusted(metadata.uid()) && (mode & 0o022 == 0 || is_sticky))
}

#[cfg(not(unix))]
fn is_closed(_folder: &Path) -> io::Result<bool> {
    Ok(true)
}

/// True for root and the user of this process.
#[cfg(unix)]
fn is_trusted(user: u32) -> bool {
    user == 0
        || user == nix::unistd::geteuid().as_raw()
        || user == OVERFLOW_USER && !is_root_mapped()
}

/// The owner that the kernel reports for users outside the namespace of this process (`user_namespaces(7)`;
/// the default of `/proc/sys/kernel/overflowuid`).
#[cfg(unix)]
const OVERFLOW_USER: u32 = 65534;

/// False in a container that knows only its own user (Apptainer, bubblewrap), where root's files appear to
/// belong to [`OVERFLOW_USER`].
#[cfg(unix)]
fn is_root_mapped() -> bool {
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return true };
    // Lines of: first user inside, first user outside, count.
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let _inside = numbers.next();
        matches!(numbers.next(), Some(Ok(0)))
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_can_change_is_no_place_for_private_files() {
        // The mode of the folder, and of the one above.
        let rows = [
            (0o700, 0o755, true),
            (0o755, 0o755, true),
            (0o1777, 0o755, true),
            (0o777, 0o755, false),
            (0o775, 0o755, false),
            (0o700, 0o777, false),
            (0o700, 0o1777, true),
        ];
        for (mode, above, is_suitable) in rows {
            let root = tempfile::tempdir().expect("a folder");
            let outer = root.path().join("outer");
            let inner = outer.join("inner");
            std::fs::create_dir_all(&inner).expect("made");
            for (path, mode) in [(&inner, mode), (&outer, above)] {
                std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
            }
            let found = check(&inner);
            assert_eq!(found.is_ok(), is_suitable, "{mode:o} {above:o}: {found:?}");
        }
    }

    #[test]
    fn a_colon_would_split_a_search_path() {
        let root = tempfile::tempdir().expect("a folder");
        let place = root.path().join("a:b");
        std::fs::create_dir(&place).expect("made");
        assert!(matches!(check(&place), Err(Unsuitable::Colon)));
    }

    #[test]
    fn a_folder_with_a_space_was_taken_for_libraries_that_are_preloaded() {
        let root = tempfile::tempdir().expect("a folder");
        let place = root.path().join("a b");
        std::fs::create_dir(&place).expect("made");
        assert!(check(&place).is_ok());
        if forbids_execution(root.path()) {
            return;
        }
        assert!(check_for_programs(root.path()).is_ok());
        assert!(matches!(check_for_programs(&place), Err(Unsuitable::Space)));
    }
}
