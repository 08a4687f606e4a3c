//! The private folder through which the hook and this process communicate.

use crate::hook::HOOK;
use crate::message::{Line, StopReason};
use crate::request::Request;
use crate::settings::Settings;
use nix::sys::stat::Mode;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file system in memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// The line that ends a reading of [`Control`]; the hook writes no such line.
const END: &str = "end";

/// The line that shows that all lines before it were read.
const MARK: &str = "mark";

/// The folder, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    folder: TempDir,
    /// Both ends of the pipe, so that the hook never finds it without a reader.
    control: File,
}

impl Session {
    /// Makes the folder, with all files that the hook needs.
    pub(crate) fn open(request: &Request) -> io::Result<Self> {
        let folder = folder()?;
        let root = folder.path();
        for (name, content) in HOOK {
            let path = root.join("path").join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)?;
        }
        let settings = serde_json::to_vec(&Settings::of(request))?;
        std::fs::write(root.join("settings.json"), settings)?;
        let pipe = root.join("control");
        nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let control = OpenOptions::new().read(true).write(true).open(pipe)?;
        Ok(Self { folder, control })
    }

    /// Its path.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The variables for the command's environment; `path` is the `PYTHONPATH` of this process.
    pub(crate) fn environment(&self, path: Option<OsString>) -> [(&'static str, OsString); 2] {
        let mut first = self.folder().join("path").into_os_string();
        if let Some(rest) = path.filter(|rest| !rest.is_empty()) {
            first.push(":");
            first.push(rest);
        }
        [("PYTHONPATH", first), ("XMEM_RECORDER", self.folder().into())]
    }

    /// The reader of the hook's lines.
    pub(crate) fn control(&self) -> io::Result<Control> {
        Ok(Control(BufReader::new(self.control.try_clone()?)))
    }

    /// Writes a mark behind all messages so far.
    pub(crate) fn mark(&self) -> io::Result<()> {
        writeln!(&self.control, "{MARK}")
    }

    /// Writes the reason why the recording must end; the signal follows.
    pub(crate) fn stop(&self, reason: StopReason) -> io::Result<()> {
        let whole = self.folder().join("stop.part");
        std::fs::write(&whole, reason.to_string())?;
        std::fs::rename(whole, self.folder().join("stop"))
    }

    /// True if `path` is a file directly in this folder.
    pub(crate) fn owns(&self, path: &Path) -> bool {
        path.parent() == Some(self.folder()) && path.file_name().is_some()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Without this line, the reader's thread ends with the process.
        let _ = writeln!(&self.control, "{END}");
    }
}

/// A new folder, in memory if possible.
fn folder() -> io::Result<TempDir> {
    let named = |builder: &mut tempfile::Builder<'_, '_>, place: Option<&Path>| match place {
        Some(place) => builder.tempdir_in(place),
        None => builder.tempdir(),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix("xmem-");
    named(&mut builder, Some(Path::new(SHARED_MEMORY))).or_else(|_| named(&mut builder, None))
}

/// The messages of the hook, in order.
#[derive(Debug)]
pub(crate) struct Control(BufReader<File>);

/// An item from the control pipe.
#[derive(Debug)]
pub(crate) enum ControlItem {
    /// A message of the hook.
    Line(Line),
    /// A mark: all messages before it have been read.
    Mark,
}

impl Iterator for Control {
    type Item = ControlItem;

    fn next(&mut self) -> Option<ControlItem> {
        loop {
            let mut line = Vec::new();
            if self.0.read_until(b'\n', &mut line).is_err() {
                return None;
            }
            match line.trim_ascii() {
                line if line == END.as_bytes() => return None,
                line if line == MARK.as_bytes() => return Some(ControlItem::Mark),
                line => match serde_json::from_slice(line) {
                    Ok(line) => return Some(ControlItem::Line(line)),
                    Err(error) => {
                        let line = String::from_utf8_lossy(line);
                        tracing::debug!(target: "xmem::recorder", %error, %line, "not a message of the hook");
                    }
                },
            }
        }
    }
}

/// The named pipe through which PyTorch writes the trace `path`: Kineto writes beside it first
/// (libkineto/src/output_json.cpp, `ChromeTraceLogger`), and renames.
pub(crate) fn pipe_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}
