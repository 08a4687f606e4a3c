//! Files and folders that only their owner can read and write, whatever the umask.
//!
//! The mode is that of the system call that creates them, so that there is no moment at which another
//! user can open them. The umask can only remove permissions.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Creates a folder with mode 0700.
///
/// # Errors
/// If it exists or cannot be created.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "modes exist on Unix"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Writes a new file with mode 0600.
///
/// # Errors
/// If the file exists, also as a symbolic link, or cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content)
}
