//! The question whether other users can change a file, before its code is run or its content believed.
//!
//! A path is followed name by name, through its links. Each folder in which a name is looked up, and what
//! is found at the end, must belong to root or to the caller, and nobody else may write to it. Then only
//! root and the caller can change what the path leads to, so that it is the same file when it is loaded.
//! What follows from an answer is decided by [`settings`](crate::settings).

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// The user in whose name files are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    uid: u32,
    /// Finds the group that has a user as its only member.
    private_group: fn(u32) -> Option<u32>,
}

/// The reason why others can change a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Distrust {
    #[error("`{}` belongs to {owner}", .place.display())]
    Owner { place: PathBuf, owner: String },
    #[error("other users can write to `{}` (mode {mode:o})", .place.display())]
    Writable { place: PathBuf, mode: u32 },
    #[error("`{}` cannot be checked: {reason}", .place.display())]
    Unknown { place: PathBuf, reason: String },
}

impl Distrust {
    /// The command that helps, if there is one.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Self::Writable { place, .. } => Some(format!("`chmod go-w {}`", place.display())),
            Self::Owner { .. } | Self::Unknown { .. } => None,
        }
    }

    fn unknown(place: &Path, error: &io::Error) -> Self {
        Self::Unknown { place: place.to_path_buf(), reason: error.to_string() }
    }
}

impl Caller {
    /// The effective user of this process.
    pub(crate) fn current() -> Self {
        Self { uid: nix::unistd::geteuid().as_raw(), private_group }
    }

    /// True for the user whose files are those of the system.
    pub(crate) const fn is_root(self) -> bool {
        self.uid == 0
    }

    fn check(self, place: &Path, found: &Metadata) -> Result<(), Distrust> {
        if found.uid() != 0 && found.uid() != self.uid {
            return Err(Distrust::Owner { place: place.to_path_buf(), owner: owner(found.uid()) });
        }
        // Others cannot replace what does not belong to them in a folder with the sticky bit; what
        // belongs to them is refused as the walk comes to it. A link has no permissions of its own.
        let sticky_folder = found.is_dir() && found.mode() & 0o1000 != 0;
        if found.is_symlink() || sticky_folder {
            return Ok(());
        }
        let by_group = found.mode() & 0o020 != 0
            && !(found.uid() == self.uid && Some(found.gid()) == (self.private_group)(self.uid));
        if found.mode() & 0o002 != 0 || by_group {
            let mode = found.mode() & 0o7777;
            return Err(Distrust::Writable { place: place.to_path_buf(), mode });
        }
        Ok(())
    }
}

/// The private group of a user: the user's primary group, if it has the user's name and no other member.
/// That is the scheme of distributions which give each user a group, and the umask 002. Whoever adds
/// members to such a group gives them the user's files.
fn private_group(uid: u32) -> Option<u32> {
    let user = nix::unistd::User::from_uid(uid.into()).ok().flatten()?;
    let group = nix::unistd::Group::from_gid(user.gid).ok().flatten()?;
    let alone = group.mem.iter().all(|member| *member == user.name);
    (uid != 0 && group.name == user.name && alone).then_some(group.gid.as_raw())
}

fn owner(uid: u32) -> String {
    let user = nix::unistd::User::from_uid(uid.into()).ok().flatten();
    user.map_or_else(|| format!("user {uid}"), |user| format!("user {} ({uid})", user.name))
}

/// The links that are followed before a path counts as endless (`MAXSYMLINKS` of Linux).
const MAX_LINKS: usize = 40;

/// Follows `path` to a file or folder that only root and `caller` can change, and returns where that is.
///
/// # Errors
/// If someone else can change what the path leads to; the error names the place.
pub(crate) fn file(path: &Path, caller: Caller) -> Result<PathBuf, Distrust> {
    walk(path, caller)?.map_err(|(place, error)| Distrust::unknown(&place, &error))
}

/// Checks `library` and the parts of cuDNN beside it, and returns the path from which all of them are
/// loaded: the folder without links, and the file's name in it.
///
/// # Errors
/// If someone else can change one of them; the error names the place.
pub(crate) fn library(library: &Path, caller: Caller) -> Result<PathBuf, Distrust> {
    let absolute = std::path::absolute(library).map_err(|e| Distrust::unknown(library, &e))?;
    let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return file(&absolute, caller);
    };
    let folder = file(folder, caller)?;
    let library = folder.join(name);
    file(&library, caller)?;
    // The library loads its parts from its own folder. Others can add none there.
    each_in(&folder, "libcudnn", caller)?;
    Ok(library)
}

/// Checks a folder of cached answers, and the files of answers in it.
///
/// # Errors
/// If someone else can change one of them; the error names the place.
pub(crate) fn answers(folder: &Path, caller: Caller) -> Result<(), Distrust> {
    each_in(&file(folder, caller)?, "cudnn-", caller)
}

/// Checks a file or folder that is to be made, if it does not exist yet.
///
/// # Errors
/// If someone else can change what the path leads to; the error names the place.
pub(crate) fn place(path: &Path, caller: Caller) -> Result<(), Distrust> {
    match walk(path, caller)? {
        Err((place, error)) if error.kind() != io::ErrorKind::NotFound => {
            Err(Distrust::unknown(&place, &error))
        }
        _ => Ok(()),
    }
}

/// Checks what has a name with that beginning in a folder.
fn each_in(folder: &Path, beginning: &str, caller: Caller) -> Result<(), Distrust> {
    let unknown = |error: io::Error| Distrust::unknown(folder, &error);
    for entry in fs::read_dir(folder).map_err(unknown)? {
        let entry = entry.map_err(unknown)?;
        if entry.file_name().as_encoded_bytes().starts_with(beginning.as_bytes()) {
            // A link to nothing counts as nothing: only root or the caller can make it something.
            place(&entry.path(), caller)?;
        }
    }
    Ok(())
}

/// Follows a path; the inner error is the place at which nothing can be found.
fn walk(path: &Path, caller: Caller) -> Result<Result<PathBuf, (PathBuf, io::Error)>, Distrust> {
    let absolute = std::path::absolute(path).map_err(|e| Distrust::unknown(path, &e))?;
    let mut at = PathBuf::from("/");
    let mut left = names(&absolute);
    let mut links = 0;
    let root = at.metadata().map_err(|e| Distrust::unknown(&at, &e))?;
    caller.check(&at, &root)?;
    while let Some(name) = left.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(name);
        let found = match next.symlink_metadata() {
            Ok(found) => found,
            Err(error) => return Ok(Err((next, error))),
        };
        caller.check(&next, &found)?;
        if !found.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        let target = match next.read_link() {
            Ok(target) if links <= MAX_LINKS => target,
            Ok(_) => return Ok(Err((next, io::Error::other("too many symbolic links")))),
            Err(error) => return Ok(Err((next, error))),
        };
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        left.extend(names(&target));
    }
    Ok(Ok(at))
}

/// The names of a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const NO_GROUP: fn(u32) -> Option<u32> = |_| None;

    fn caller() -> Caller {
        Caller { private_group: NO_GROUP, ..Caller::current() }
    }

    struct Tree(tempfile::TempDir);

    impl Tree {
        /// `venv/lib/libcudnn.so.9`, a part beside it, and links to both.
        fn new() -> Self {
            let tree = Self(tempfile::tempdir().expect("a folder"));
            fs::create_dir_all(tree.at("venv/lib")).expect("created");
            fs::create_dir(tree.at("links")).expect("created");
            for file in ["venv/lib/libcudnn.so.9", "venv/lib/libcudnn_graph.so.9", "venv/lib/other"]
            {
                fs::write(tree.at(file), "").expect("written");
                tree.set(file, 0o644);
            }
            for folder in ["venv", "venv/lib", "links", ""] {
                tree.set(folder, 0o755);
            }
            symlink("../venv", tree.at("links/venv")).expect("linked");
            symlink(tree.at("links/venv/lib"), tree.at("links/lib")).expect("linked");
            symlink("nothing", tree.at("venv/lib/libcudnn.so")).expect("linked");
            tree
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn set(&self, path: &str, mode: u32) {
            fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).expect("set");
        }
    }

    #[test]
    fn a_library_that_only_the_caller_can_change_is_loaded_from_its_own_folder() {
        let tree = Tree::new();
        for path in ["venv/lib", "links/venv/lib", "links/lib", "links/../links/lib"] {
            let library = library(&tree.at(path).join("libcudnn.so.9"), caller());
            assert_eq!(library, Ok(tree.at("venv/lib/libcudnn.so.9")), "{path}");
        }
    }

    /// Each row: what is opened to others, with which mode; whether the library is refused for that.
    #[test]
    fn every_place_on_the_way_counts() {
        for (place, mode, refused) in [
            ("venv/lib/libcudnn.so.9", 0o666, true),
            ("venv/lib/libcudnn.so.9", 0o664, true),
            ("venv/lib/libcudnn.so.9", 0o600, false),
            ("venv/lib/libcudnn_graph.so.9", 0o646, true),
            ("venv/lib/other", 0o666, false),
            ("venv/lib", 0o777, true),
            ("venv/lib", 0o775, true),
            ("venv", 0o757, true),
            ("venv", 0o1777, false),
            ("venv", 0o700, false),
            ("links", 0o777, true),
            ("links", 0o1777, false),
            ("", 0o770, true),
        ] {
            let tree = Tree::new();
            tree.set(place, mode);
            let found = library(&tree.at("links/lib/libcudnn.so.9"), caller());
            let place = tree.at(place);
            let named = match &found {
                Ok(_) => None,
                Err(Distrust::Writable { place, mode }) => Some((place.join(""), *mode)),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(named, refused.then(|| (place.join(""), mode)), "{}", place.display());
        }
    }

    #[test]
    fn the_group_may_write_if_the_caller_is_its_only_member() {
        use std::os::unix::fs::MetadataExt as _;
        let tree = Tree::new();
        tree.set("venv", 0o775);
        let of_group = tree.at("venv").metadata().expect("a folder").gid();
        assert_eq!(of_group, nix::unistd::getegid().as_raw(), "the group of the tester");
        let library = |private_group| {
            let caller = Caller { private_group, ..caller() };
            library(&tree.at("venv/lib/libcudnn.so.9"), caller).is_ok()
        };
        assert!(library(|_| Some(nix::unistd::getegid().as_raw())));
        assert!(!library(|_| Some(nix::unistd::getegid().as_raw() + 1)));
        tree.set("venv", 0o777);
        assert!(!library(|_| Some(nix::unistd::getegid().as_raw())));
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let tree = Tree::new();
        let me = caller();
        let other = Caller { uid: me.uid + 1, ..me };
        let found = library(&tree.at("venv/lib/libcudnn.so.9"), other);
        if me.is_root() {
            assert!(found.is_ok(), "files of root are everyone's");
            for place in
                ["venv/lib/libcudnn.so.9", "venv/lib/libcudnn_graph.so.9", "venv", "links/lib"]
            {
                let tree = Tree::new();
                std::os::unix::fs::lchown(tree.at(place), Some(4321), None).expect("given away");
                let found = library(&tree.at("links/lib/libcudnn.so.9"), me);
                let owner = "user 4321".to_owned();
                assert_eq!(found, Err(Distrust::Owner { place: tree.at(place), owner }));
            }
        } else {
            assert!(matches!(found, Err(Distrust::Owner { .. })), "{found:?}");
        }
    }

    #[test]
    fn links_in_a_circle_end() {
        let tree = Tree::new();
        symlink("b", tree.at("a")).expect("linked");
        symlink("a", tree.at("b")).expect("linked");
        let found = file(&tree.at("a"), caller()).expect_err("no file");
        assert!(found.to_string().contains("too many symbolic links"), "{found}");
    }
}
