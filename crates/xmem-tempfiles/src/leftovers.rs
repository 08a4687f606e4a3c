//! Removes what a killed process has left behind.

use crate::name::Maker;
use std::fs::{DirEntry, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The age at which a file is left over if its process cannot be looked up: it ran on another machine that
/// shares the folder, in another container, or another process has its number now.
const STALE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Entries of a folder that are looked at: a search must not take longer than the work.
const MAX_ENTRIES: usize = 10_000;

/// The kind of entries to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Files,
    Folders,
}

/// Removes files or folders in `place` that this user's ended processes have left there. What cannot be
/// removed stays.
pub(crate) fn remove(place: &Path, kind: Kind) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.take(MAX_ENTRIES).flatten() {
        if is_left_over(&entry, kind) {
            let path = entry.path();
            // Another process may have removed it, and one that stays does no harm.
            let _ = match kind {
                Kind::Files => std::fs::remove_file(path),
                Kind::Folders => {
                    open_folders(&path);
                    std::fs::remove_dir_all(path)
                }
            };
        }
    }
}

/// Gives the owner all rights to the folders in a folder, so that they can be removed: overlayfs makes one without any,
/// and programs make some that cannot be written to. What cannot be changed stays.
#[cfg(unix)]
pub(crate) fn open_folders(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&folder) else { continue };
        if metadata.permissions().mode() & 0o700 != 0o700 {
            let _ = std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700));
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(inner.map(|entry| entry.path()));
    }
}

#[cfg(not(unix))]
pub(crate) fn open_folders(_folder: &Path) {}

fn is_left_over(entry: &DirEntry, kind: Kind) -> bool {
    let Some(maker) = Maker::of(&entry.file_name()) else { return false };
    // Not that of the target, if it is a symbolic link.
    let Ok(metadata) = entry.metadata() else { return false };
    is_ours(&metadata, kind)
        && (maker.machine.is_current() && !is_running(maker.process) || is_stale(&metadata))
}

fn is_stale(metadata: &Metadata) -> bool {
    let age = metadata.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age >= STALE)
}

/// True for the kind of entry that this crate makes, owned by this user.
#[cfg(unix)]
fn is_ours(metadata: &Metadata, kind: Kind) -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_kind = match kind {
        Kind::Files => metadata.is_file(),
        Kind::Folders => metadata.is_dir() && metadata.mode() & 0o077 == 0,
    };
    is_kind && metadata.uid() == nix::unistd::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_ours(_metadata: &Metadata, _kind: Kind) -> bool {
    false
}

/// True unless no process has that number.
#[cfg(unix)]
fn is_running(process: u32) -> bool {
    use nix::errno::Errno;
    use nix::sys::signal::kill;
    let Ok(process) = i32::try_from(process) else { return true };
    process <= 0 || kill(nix::unistd::Pid::from_raw(process), None) != Err(Errno::ESRCH)
}

#[cfg(not(unix))]
fn is_running(_process: u32) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::name::Machine;
    use crate::private::create_private_folder;
    use std::ffi::OsString;
    use std::fs::File;
    use std::path::PathBuf;

    /// A number that no process has.
    fn ended_process() -> u32 {
        let mut child = std::process::Command::new("true").spawn().expect("runs");
        child.wait().expect("ends");
        child.id()
    }

    fn name(machine: &str, process: u32) -> OsString {
        format!("xmem-{machine}-{process}-aB3dE6").into()
    }

    fn here() -> String {
        let maker = Maker::current().to_string();
        maker.split('-').nth(1).expect("the machine").to_owned()
    }

    fn put(place: &Path, name: &OsString, age: Duration, kind: Kind) -> PathBuf {
        let path = place.join(name);
        match kind {
            Kind::Files => std::fs::write(&path, "half a result").expect("written"),
            Kind::Folders => {
                create_private_folder(&path).expect("made");
                std::fs::write(path.join("settings.json"), "{}").expect("written");
            }
        }
        let modified = SystemTime::now() - age;
        File::open(&path).and_then(|file| file.set_modified(modified)).expect("set");
        path
    }

    #[test]
    fn what_ended_processes_left_is_removed_and_nothing_else() {
        let (fresh, old) = (Duration::ZERO, STALE + Duration::from_secs(60));
        let (ended, running) = (ended_process(), std::process::id());
        let here = here();
        assert!(Machine::current().is_current());
        let rows = [
            (name(&here, ended), fresh, true),
            (name(&here, running), fresh, false),
            // The process that has the number now is another one.
            (name(&here, running), old, true),
            (name("0badcafe", ended), fresh, false),
            (name("0badcafe", ended), old, true),
            (name("00000000", ended), fresh, false),
            ("xmem-results-2024".into(), old, false),
            (format!("xmem-{here}-{ended}-aB3dE6.json").into(), old, false),
        ];
        for kind in [Kind::Files, Kind::Folders] {
            for (name, age, is_removed) in &rows {
                let place = tempfile::tempdir().expect("a folder");
                let path = put(place.path(), name, *age, kind);
                remove(place.path(), kind);
                assert_eq!(path.exists(), !is_removed, "{kind:?} {name:?} {age:?}");
            }
        }
    }

    #[test]
    fn a_link_a_file_of_another_kind_and_an_open_folder_stay() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().expect("a folder");
        let precious = put(place.path(), &"precious".into(), Duration::ZERO, Kind::Folders);
        let name = name(&here(), ended_process());
        for kind in [Kind::Files, Kind::Folders] {
            let link = place.path().join(&name);
            std::os::unix::fs::symlink(&precious, &link).expect("linked");
            remove(place.path(), kind);
            assert!(link.is_symlink() && precious.join("settings.json").exists(), "{kind:?}");
            std::fs::remove_file(link).expect("removed");
        }
        let file = put(place.path(), &name, Duration::ZERO, Kind::Files);
        remove(place.path(), Kind::Folders);
        assert!(file.exists());
        std::fs::remove_file(file).expect("removed");
        let folder = put(place.path(), &name, Duration::ZERO, Kind::Folders);
        remove(place.path(), Kind::Files);
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o770)).expect("set");
        remove(place.path(), Kind::Folders);
        assert!(folder.exists(), "others may have put files there");
    }
}
