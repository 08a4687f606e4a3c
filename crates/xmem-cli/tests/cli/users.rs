//! The command in the name of other users, where the tests run as root.

use crate::job::Folder;
use crate::shell::prepared;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// A user without rights or files (`nobody`).
pub(crate) const ORDINARY_USER: u32 = 65534;

/// Another such user.
pub(crate) const OTHER_USER: u32 = 65533;

/// True if this process may become any user.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}

/// The command and a trace in a folder that all users can read.
pub(crate) struct Installed(Folder);

impl Installed {
    pub(crate) fn new(trace: &str) -> Self {
        let folder = Folder::empty();
        let program = folder.path("xmem");
        let built = env!("CARGO_BIN_EXE_xmem");
        if fs::hard_link(built, &program).is_err() {
            folder.install(built, "xmem");
        }
        folder.put("trace.json.zst", &fs::read(trace).expect("a trace"));
        set_mode(folder.path(""), 0o755);
        set_mode(folder.path("trace.json.zst"), 0o644);
        Self(folder)
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path(name)
    }

    /// A new folder in it, which belongs to that user.
    pub(crate) fn folder_of(&self, user: u32, name: &str) -> String {
        let path = self.path(name);
        fs::create_dir(&path).expect("made");
        give(&path, user);
        path
    }

    /// A new file in it, which belongs to that user.
    pub(crate) fn file_of(&self, user: u32, name: &str, content: &[u8]) -> String {
        self.0.put(name, content);
        let path = self.path(name);
        give(&path, user);
        path
    }

    /// The command in the name of that user.
    pub(crate) fn command(&self, user: u32) -> Command {
        let mut command = prepared(Command::new(self.path("xmem")));
        command.uid(user).gid(user).current_dir(self.path(""));
        command
    }
}

pub(crate) fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
}

fn give(path: &str, user: u32) {
    std::os::unix::fs::chown(path, Some(user), Some(user)).expect("given");
}
