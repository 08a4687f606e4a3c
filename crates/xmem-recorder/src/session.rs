//! The private folder through which the hook and this process talk.

use crate::hook::HOOK;
use crate::message::{Line, StopWord};
use crate::request::Request;
use crate::settings::Settings;
use nix::sys::stat::Mode;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where files cost no disk.
const MEMORY: &str = "/dev/shm";

/// Ends a reading of [`Control`]; no line of the hook looks like it.
const END: &str = "end";

/// Says that all lines before it were read.
const MARK: &str = "mark";

/// The folder; it goes when this does.
#[derive(Debug)]
pub(crate) struct Session {
    folder: TempDir,
    /// Both ends of the pipe, so that the hook never finds it without a reader.
    control: File,
}

impl Session {
    /// A folder with all that the hook needs.
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

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the command's environment has of it; `path` is the `PYTHONPATH` of this process.
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

    /// Puts a mark behind all that was said so far.
    pub(crate) fn mark(&self) -> io::Result<()> {
        writeln!(&self.control, "{MARK}")
    }

    /// Says why the recording is to end; the signal comes afterwards.
    pub(crate) fn stop(&self, word: StopWord) -> io::Result<()> {
        let whole = self.folder().join("stop.part");
        std::fs::write(&whole, word.to_string())?;
        std::fs::rename(whole, self.folder().join("stop"))
    }

    /// Whether `path` is a file of this folder itself.
    pub(crate) fn owns(&self, path: &Path) -> bool {
        path.parent() == Some(self.folder()) && path.file_name().is_some()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The reader's thread ends by itself or with the process.
        let _ = writeln!(&self.control, "{END}");
    }
}

/// In memory where that can be had.
fn folder() -> io::Result<TempDir> {
    let named = |builder: &mut tempfile::Builder<'_, '_>, place: Option<&Path>| match place {
        Some(place) => builder.tempdir_in(place),
        None => builder.tempdir(),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix("xmem-");
    named(&mut builder, Some(Path::new(MEMORY))).or_else(|_| named(&mut builder, None))
}

/// What the hook says, in order.
#[derive(Debug)]
pub(crate) struct Control(BufReader<File>);

/// What is read next.
#[derive(Debug)]
pub(crate) enum Said {
    /// Something that happened.
    Line(Line),
    /// All that was said before the mark has been read.
    Mark,
}

impl Iterator for Control {
    type Item = Said;

    fn next(&mut self) -> Option<Said> {
        loop {
            let mut line = Vec::new();
            if self.0.read_until(b'\n', &mut line).is_err() {
                return None;
            }
            match line.trim_ascii() {
                line if line == END.as_bytes() => return None,
                line if line == MARK.as_bytes() => return Some(Said::Mark),
                line => match serde_json::from_slice(line) {
                    Ok(line) => return Some(Said::Line(line)),
                    Err(error) => {
                        let line = String::from_utf8_lossy(line);
                        tracing::debug!(target: "xmem::recorder", %error, %line, "not understood");
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
