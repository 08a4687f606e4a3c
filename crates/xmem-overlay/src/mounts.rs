//! What is mounted over what, so that every file system a user may write to is covered.

use crate::coverage::Coverage;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// File systems of the kernel, which hold no files of users.
const KERNEL: [&str; 16] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "proc",
    "pstore",
    "sysfs",
    "tracefs",
];

/// A mount point, of a line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountPoint {
    path: PathBuf,
    kind: String,
    is_read_only: bool,
}

/// What is mounted at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// An overlay over what is there.
    Cover,
    /// What is there, on top of an overlay that would hide it.
    Keep,
}

/// The mount points of `/proc/self/mountinfo` (proc(5)), in its order. Lines that are not understood are left out.
pub(crate) fn mount_points(text: &[u8]) -> Vec<MountPoint> {
    text.split(|&byte| byte == b'\n').filter_map(mount_point).collect()
}

/// ID, parent, device, root, path, options, optional fields, `-`, type, source, options of the file system.
fn mount_point(line: &[u8]) -> Option<MountPoint> {
    let mut fields = line.split(|&byte| byte == b' ');
    let path = unescaped(fields.nth(4)?);
    let is_read_only = has_ro(fields.next()?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8_lossy(rest.next()?).into_owned();
    let is_read_only = is_read_only || rest.nth(1).is_some_and(has_ro);
    Some(MountPoint { path, kind, is_read_only })
}

fn has_ro(options: &[u8]) -> bool {
    options.split(|&byte| byte == b',').any(|option| option == b"ro")
}

/// Space, tab, line feed and backslash are written as three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 4).and_then(|d| std::str::from_utf8(d).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if text[at] == b'\\' => {
                bytes.push(byte);
                at += 4;
            }
            _ => {
                bytes.push(text[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// What to mount, in this order. `top` are the folders directly below the root that are not symbolic links: the root
/// itself cannot be covered from inside.
pub(crate) fn actions(
    coverage: &Coverage,
    mounts: &[MountPoint],
    top: &[PathBuf],
) -> Vec<(PathBuf, Action)> {
    let mut found: Vec<(PathBuf, Action)> = Vec::new();
    let mut put = |path: &Path, action: Action| {
        // Of several mounts at one path, the last one is seen.
        found.retain(|(other, _)| other != path);
        found.push((path.to_owned(), action));
    };
    for path in top.iter().filter(|path| coverage.covers(path)) {
        put(path, Action::Cover);
    }
    for mount in mounts.iter().filter(|mount| mount.path.parent().is_some()) {
        let is_covered = coverage.covers(&mount.path)
            && !mount.is_read_only
            && !KERNEL.contains(&mount.kind.as_str());
        put(&mount.path, if is_covered { Action::Cover } else { Action::Keep });
    }
    for path in &coverage.uncovered {
        put(path, Action::Keep);
    }
    for path in &coverage.covered {
        put(path, Action::Cover);
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    // What lies below no overlay is seen as it is.
    let covers: Vec<PathBuf> =
        found.iter().filter(|(_, a)| *a == Action::Cover).map(|(p, _)| p.clone()).collect();
    found.retain(|(path, action)| {
        *action == Action::Cover || covers.iter().any(|cover| path.starts_with(cover))
    });
    found
}

/// Covers the folders in a folder instead of the folder itself, where file systems are mounted below: in a namespace of
/// users, the kernel does not separate a folder from them (`has_locked_children` in fs/namespace.c).
///
/// # Errors
/// If the user can write to such a folder itself, which would then not be covered: its path.
pub(crate) fn split(
    actions: Vec<(PathBuf, Action)>,
    mounts: &[MountPoint],
) -> Result<Vec<(PathBuf, Action)>, PathBuf> {
    let mut rest: Vec<(PathBuf, Action)> = actions;
    let mut done = Vec::new();
    while let Some((path, action)) = rest.pop() {
        let has_mounts =
            mounts.iter().any(|mount| mount.path != path && mount.path.starts_with(&path));
        if action != Action::Cover || !has_mounts {
            done.push((path, action));
            continue;
        }
        if is_writable(&path) {
            return Err(path);
        }
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let inner = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_known = done.iter().chain(&rest).any(|(other, _)| *other == inner);
            if is_folder && !is_known {
                rest.push((inner, Action::Cover));
            } else if !is_folder
                && is_writable(&inner)
                && entry.file_type().is_ok_and(|kind| kind.is_file())
            {
                return Err(path);
            }
        }
    }
    done.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(done)
}

fn is_writable(path: &Path) -> bool {
    nix::unistd::access(path, nix::unistd::AccessFlags::W_OK).is_ok()
}

/// The folders directly below the root.
pub(crate) fn top_folders() -> std::io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir("/")? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != OsStr::from_bytes(b"lost+found") {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = r"22 27 0:21 / /proc rw,relatime - proc proc rw
24 27 0:6 / /dev rw - devtmpfs devtmpfs rw
27 1 254:0 / / rw shared:1 - ext4 /dev/vda rw
28 27 0:25 / /mnt/tools ro,nosuid - tmpfs none ro
30 27 0:40 / /home/ada rw - nfs4 server:/ada rw
31 30 0:41 / /home/ada/a\040b rw master:2 - fuse.sshfs x rw
32 27 0:42 / /data rw - lustre y ro
33 27 0:43 / /tmp rw - tmpfs tmpfs rw
34 27 0:44 / /etc/hosts rw - ext4 /dev/vda rw
half a line";

    #[test]
    fn mounts_below_a_cover_are_covered_or_kept() {
        let mounts = mount_points(INFO.as_bytes());
        assert_eq!(mounts.len(), 9);
        assert_eq!(mounts[5].path, Path::new("/home/ada/a b"));
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let job = paths(&["/home/ada/job"]);
        let coverage = Coverage::new(&job, Path::new("/tmp"), &[], &paths(&["/home/ada/out"]));
        let top =
            paths(&["/data", "/dev", "/etc", "/home", "/mnt", "/proc", "/tmp", "/usr", "/var"]);
        let found = actions(&coverage, &mounts, &top);
        let shown: Vec<String> =
            found.iter().map(|(path, action)| format!("{action:?} {}", path.display())).collect();
        assert_eq!(
            shown,
            [
                "Cover /etc",
                "Cover /etc/hosts",
                "Cover /home",
                "Cover /home/ada",
                "Cover /home/ada/a b",
                "Keep /home/ada/out",
                "Cover /mnt",
                "Keep /mnt/tools",
                "Cover /usr",
                "Cover /var",
                "Keep /var/tmp",
            ]
        );
    }

    #[test]
    fn a_job_in_a_temporary_folder_is_covered_with_it() {
        let job = [PathBuf::from("/tmp/job/train.py")];
        let coverage = Coverage::new(&job, Path::new("/tmp"), &[], &[]);
        let found = actions(&coverage, &mount_points(INFO.as_bytes()), &[]);
        assert!(found.contains(&("/tmp/job".into(), Action::Cover)), "{found:?}");
        assert!(!found.iter().any(|(path, _)| path == Path::new("/tmp")), "{found:?}");
    }
}
