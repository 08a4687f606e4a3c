//! The limit to the size of files (`ulimit -f`): a write beyond it is an error like others, so that temporary
//! files are removed.

use std::io::{self, ErrorKind};

/// Makes a write beyond the limit fail with `EFBIG` instead of ending the process with SIGXFSZ (POSIX,
/// `write`). A handler is installed because commands that xmem starts would inherit an ignored signal.
#[cfg(unix)]
pub(crate) fn make_it_an_error() {
    let seen = std::sync::Arc::default();
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, seen) {
        tracing::warn!(%error, "cannot handle SIGXFSZ: a write beyond `ulimit -f` ends the process");
    }
}

#[cfg(not(unix))]
pub(crate) fn make_it_an_error() {}

/// The error, with the name of the limit if it was exceeded.
pub(crate) fn explain(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::FileTooLarge {
        let text = "the file would exceed the limit to the size of files, which `ulimit -f` shows";
        io::Error::new(ErrorKind::FileTooLarge, text)
    } else {
        error
    }
}
