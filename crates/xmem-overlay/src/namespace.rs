//! The process that becomes the command, in a mount namespace of its own (mount_namespaces(7)) in which overlayfs
//! covers what is to stay as it is.
//!
//! Root needs no user namespace, and keeps the files of all users with it. Others get one in which only they
//! themselves are mapped (user_namespaces(7)): the command has no more rights in it than outside.

use crate::coverage::Coverage;
use crate::mounts::{self, Action};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{getegid, geteuid};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// In the folder of an overlay: one folder for each layer.
pub(crate) const LAYERS: &str = "layers";
/// In the folder of a layer: what the command wrote.
pub(crate) const UPPER: &str = "upper";
/// In the folder of an overlay: what is mounted.
pub(crate) const PLAN: &str = "plan";
/// In the folder of an overlay: the error number of a command that cannot be run.
pub(crate) const NOT_RUN: &str = "not-run";

/// Enters the namespace that `plan` describes, and becomes the command; with none, returns an empty text. The text is
/// the reason of a failure.
pub(crate) fn enter(plan: &Path, command: &[OsString]) -> String {
    let Some(folder) = plan.parent() else { return "the plan is not in a folder".to_owned() };
    if let Err(error) = cover(folder, plan) {
        return error;
    }
    let Some((program, arguments)) = command.split_first() else { return String::new() };
    let error = Command::new(program).args(arguments).exec();
    // The caller says what is wrong, as if it had started the command itself.
    let number = error.raw_os_error().unwrap_or(0).to_string();
    let _ = fs::write(folder.join(NOT_RUN), number);
    format!("cannot run `{}`: {error}", Path::new(program).display())
}

/// The text of a plan: fields that end with a zero byte, in pairs of a kind and a path.
pub(crate) fn plan_of(coverage: &Coverage) -> Vec<u8> {
    let mut text = Vec::new();
    for (kind, paths) in [(b'u', &coverage.uncovered), (b'c', &coverage.covered)] {
        for path in paths {
            text.extend([kind, 0]);
            text.extend(path.as_os_str().as_bytes());
            text.push(0);
        }
    }
    text
}

fn coverage_of(plan: &[u8]) -> Coverage {
    let mut coverage = Coverage::default();
    let mut fields = plan.split(|&byte| byte == 0);
    while let (Some(kind), Some(path)) = (fields.next(), fields.next()) {
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        match kind {
            b"u" => coverage.uncovered.insert(path),
            _ => coverage.covered.insert(path),
        };
    }
    coverage
}

/// A path with what is there before anything is mounted over it.
struct Place {
    path: PathBuf,
    action: Action,
    before: OwnedFd,
    metadata: Metadata,
}

impl Place {
    /// None for a path that this user cannot reach: the command cannot either.
    fn of((path, action): (PathBuf, Action)) -> Option<Self> {
        let metadata = fs::metadata(&path).ok()?;
        let before = open(&path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
        Some(Self { path, action, before, metadata })
    }

    /// The path of what was there.
    fn before(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.before.as_raw_fd()).into()
    }
}

fn cover(folder: &Path, plan: &Path) -> Result<(), String> {
    let plan = fs::read(plan).map_err(|error| format!("cannot read the plan: {error}"))?;
    let coverage = coverage_of(&plan);
    let working = std::env::current_dir().map_err(|error| format!("no working folder: {error}"))?;
    let has_users = separate()?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount::<str, _, str, str>(None, "/", None, private, None).map_err(failed("cannot make mounts private"))?;
    let layers = folder.join(LAYERS);
    check(&layers.join("check"), has_users)?;
    let mounted = fs::read("/proc/self/mountinfo").map_err(|e| format!("cannot read the mounts: {e}"))?;
    let top = mounts::top_folders().map_err(|error| format!("cannot list `/`: {error}"))?;
    let mounted = mounts::mount_points(&mounted);
    let mut actions = mounts::actions(&coverage, &mounted, &top);
    if has_users {
        actions = mounts::split(actions, &mounted).map_err(|path| {
            format!("cannot cover `{}`: file systems are mounted below it", path.display())
        })?;
    }
    // All are opened before the first one is covered.
    let places: Vec<Place> = actions.into_iter().filter_map(Place::of).collect();
    for (number, place) in places.iter().enumerate() {
        let layer = layers.join(number.to_string());
        let result = match place.action {
            Action::Keep => bind(&place.before(), &place.path),
            Action::Cover if place.metadata.is_dir() => over(place, &layer, has_users),
            Action::Cover => cover_file(place, &layer),
        };
        result.map_err(|error| format!("cannot cover `{}`: {error}", place.path.display()))?;
    }
    // The working folder as it is seen from here on.
    std::env::set_current_dir(&working).map_err(|error| format!("cannot enter the working folder: {error}"))
}

/// Makes the namespace; returns true if it is one of users, too.
fn separate() -> Result<bool, String> {
    if unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        return Ok(false);
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).map_err(failed("namespaces are not allowed"))?;
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in maps {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("cannot write `/proc/self/{file}`: {error}"))?;
    }
    Ok(true)
}

fn failed(what: &str) -> impl FnOnce(Errno) -> String {
    move |error| format!("{what}: {}", error.desc())
}

/// Mounts what `from` names at `to`.
fn bind(from: &Path, to: &Path) -> Result<(), Errno> {
    mount::<_, _, str, str>(Some(from), to, None, MsFlags::MS_BIND | MsFlags::MS_REC, None)
}

/// Mounts an overlay over a folder, whose owner and mode are those of its upper layer.
fn over(place: &Place, layer: &Path, has_users: bool) -> Result<(), Errno> {
    let upper = layer.join(UPPER);
    make(&upper).and_then(|()| make(&layer.join("work"))).map_err(errno)?;
    let (owner, group) = (place.metadata.uid(), place.metadata.gid());
    if !has_users {
        std::os::unix::fs::chown(&upper, Some(owner), Some(group)).map_err(errno)?;
    }
    fs::set_permissions(&upper, place.metadata.permissions()).map_err(errno)?;
    if let Ok(modified) = place.metadata.modified() {
        // A time that cannot be set is of no importance.
        let _ = File::open(&upper).and_then(|folder| folder.set_modified(modified));
    }
    overlay(&place.before(), layer, &place.path, has_users)
}

fn overlay(lower: &Path, layer: &Path, at: &Path, has_users: bool) -> Result<(), Errno> {
    let mut options = OsString::from("lowerdir=");
    options.push(lower);
    for (name, folder) in [(",upperdir=", UPPER), (",workdir=", "work")] {
        options.push(name);
        options.push(layer.join(folder));
    }
    if has_users {
        options.push(",userxattr");
    }
    let kind = Some(OsStr::new("overlay"));
    mount(kind, at, kind, MsFlags::empty(), Some(options.as_os_str()))
}

/// Mounts a copy over a file that is a mount point.
fn cover_file(place: &Place, layer: &Path) -> Result<(), Errno> {
    let copy = layer.join(UPPER).join("file");
    let is_file = place.metadata.is_file();
    if !is_file || fs::create_dir_all(layer.join(UPPER)).and_then(|()| fs::copy(place.before(), &copy)).is_err() {
        // One that cannot be read, or a device: as it was.
        return bind(&place.before(), &place.path);
    }
    bind(&copy, &place.path)
}

/// Fails where overlayfs cannot remove and make folders again, for want of extended attributes.
fn check(folder: &Path, has_users: bool) -> Result<(), String> {
    let (lower, seen) = (folder.join("lower"), folder.join("seen"));
    let attempt = || -> std::io::Result<bool> {
        for path in [&folder.join(UPPER), &folder.join("work"), &lower.join("a"), &seen] {
            fs::create_dir_all(path)?;
        }
        fs::write(lower.join("a/b"), "")?;
        overlay(&lower, folder, &seen, has_users)?;
        let again = fs::remove_dir_all(seen.join("a")).and_then(|()| fs::create_dir(seen.join("a")));
        let is_empty = again.and_then(|()| Ok(fs::read_dir(seen.join("a"))?.next().is_none()));
        umount2(&seen, MntFlags::MNT_DETACH)?;
        is_empty
    };
    match attempt() {
        Ok(true) => Ok(()),
        Ok(false) => Err("overlayfs does not work: a folder that was removed has files".to_owned()),
        Err(error) => Err(format!("overlayfs does not work in `{}`: {error}", folder.display())),
    }
}

fn make(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

fn errno(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let odd = PathBuf::from(OsString::from_vec(b"/home/\xff\n a".to_vec()));
        let coverage = Coverage::new(&["/tmp/a/b".into()], Path::new("/tmp"), &[odd], &[]);
        let read = coverage_of(&plan_of(&coverage));
        assert_eq!(read, coverage);
    }
}
