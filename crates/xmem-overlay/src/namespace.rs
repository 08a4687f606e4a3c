//! The process that becomes the command, in a mount namespace of its own (mount_namespaces(7)) in which overlayfs
//! covers what is to stay as it is.
//!
//! Root needs no user namespace, and keeps the files of all users with it. Others get one in which only they
//! themselves are mapped (user_namespaces(7)): the command has no more rights in it than outside.

use crate::coverage::Coverage;
use crate::mounts::{self, Action};
use crate::overlay::LAYERS;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{getegid, geteuid};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// In the folder of a layer: what the command wrote.
const UPPER: &str = "upper";

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

/// Enters a namespace, one of users only if that is allowed, and covers the files of users in it. Layers are made in
/// `folder`. The text is the reason of a failure.
pub(crate) fn enter(
    folder: &Path,
    coverage: &Coverage,
    may_have_users: bool,
) -> Result<(), String> {
    let working = std::env::current_dir().map_err(|error| format!("no working folder: {error}"))?;
    let has_users = separate(may_have_users)?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount::<str, _, str, str>(None, "/", None, private, None)
        .map_err(failed("cannot make mounts private"))?;
    let layers = folder.join(LAYERS);
    check(&layers.join("check"), has_users)?;
    let mounted =
        fs::read("/proc/self/mountinfo").map_err(|e| format!("cannot read the mounts: {e}"))?;
    let top = mounts::top_folders().map_err(|error| format!("cannot list `/`: {error}"))?;
    let mounted = mounts::mount_points(&mounted);
    let mut actions = mounts::actions(coverage, &mounted, &top);
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
    std::env::set_current_dir(&working)
        .map_err(|error| format!("cannot enter the working folder: {error}"))
}

/// Makes the namespace; returns true if it is one of users, too.
fn separate(may_have_users: bool) -> Result<bool, String> {
    match unshare(CloneFlags::CLONE_NEWNS) {
        Ok(()) => return Ok(false),
        Err(_) if may_have_users => {}
        Err(error) => return Err(failed("mount namespaces are not allowed")(error)),
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
        .map_err(failed("namespaces are not allowed"))?;
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
    if !is_file
        || fs::create_dir_all(layer.join(UPPER))
            .and_then(|()| fs::copy(place.before(), &copy))
            .is_err()
    {
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
        let again =
            fs::remove_dir_all(seen.join("a")).and_then(|()| fs::create_dir(seen.join("a")));
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
