//! Opening a file that is named on a command line.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The time after which a named pipe that no program writes to is given up.
const PIPE_WAIT: Duration = Duration::from_secs(15);

/// Opens a file for reading. Opening a named pipe waits until a program opens it for writing, for at most
/// 15 seconds.
///
/// # Errors
/// If the operating system refuses to open it, or nothing writes to the pipe.
pub fn open_input(path: &Path) -> io::Result<File> {
    if !is_named_pipe(path)? {
        return open(path);
    }
    let (sender, opened) = std::sync::mpsc::sync_channel(1);
    let pipe = path.to_owned();
    // The thread waits as long as the process lives, if need be.
    std::thread::Builder::new().spawn(move || sender.send(open(&pipe)))?;
    opened.recv_timeout(PIPE_WAIT).unwrap_or_else(|_| {
        let seconds = PIPE_WAIT.as_secs();
        let message = format!(
            "it is a named pipe, and no program has opened it for writing within {seconds} s"
        );
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}

#[expect(clippy::disallowed_methods, reason = "this is the crate that opens trace files")]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn is_named_pipe(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt;
    Ok(std::fs::metadata(path)?.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_named_pipe(path: &Path) -> io::Result<bool> {
    std::fs::metadata(path).map(|_| false)
}
