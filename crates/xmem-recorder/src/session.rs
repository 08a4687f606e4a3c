//! The private folder through which the hook and this process communicate.
//!
//! Python executes files of it, so that only the user can open it, whatever the umask.

use crate::control::Control;
use crate::hook::HOOK;
use crate::message::{ProcessId, StopReason};
use crate::request::Request;
use crate::settings::Settings;
use serde::Serialize;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use xmem_tempfiles::{PrivateFolder, create_private_folder, write_private};

/// The variable that names the folder in the environment of the command.
pub(crate) const VARIABLE: &str = "XMEM_RECORDER";

/// The folders of the hook. Python would make the last one with the umask.
const FOLDERS: [&str; 3] = ["path", "path/xmem_recorder", "path/__pycache__"];

/// The folder, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    folder: PrivateFolder,
}

impl Session {
    /// Makes the folder, with all files that the hook needs, and its control pipe.
    pub(crate) fn open(request: &Request) -> io::Result<(Self, Control)> {
        let folder = PrivateFolder::new()?;
        let root = folder.path();
        for name in FOLDERS {
            create_private_folder(&root.join(name))?;
        }
        for (name, content) in HOOK {
            write_private(&root.join("path").join(name), content.as_bytes())?;
        }
        let settings = serde_json::to_vec(&Settings::of(request))?;
        write_private(&root.join("settings.json"), &settings)?;
        let control = Control::make(&root.join("control"))?;
        Ok((Self { folder }, control))
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
        [("PYTHONPATH", first), (VARIABLE, self.folder().into())]
    }

    /// Answers the question of a process for its engine.
    pub(crate) fn answer(&self, pid: ProcessId, answer: &impl Serialize) -> io::Result<()> {
        let name = format!("engine-{pid}.json");
        let whole = self.folder().join(format!("{name}.part"));
        write_private(&whole, &serde_json::to_vec(answer)?)?;
        std::fs::rename(whole, self.folder().join(name))
    }

    /// Writes the reason why the recording must end; the signal follows.
    pub(crate) fn stop(&self, reason: StopReason) -> io::Result<()> {
        let whole = self.folder().join("stop.part");
        match std::fs::remove_file(&whole) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => write_private(&whole, reason.to_string().as_bytes())?,
        }
        std::fs::rename(whole, self.folder().join("stop"))
    }

    /// True if `path` is a file directly in this folder.
    pub(crate) fn owns(&self, path: &Path) -> bool {
        path.parent() == Some(self.folder()) && path.file_name().is_some()
    }
}

/// The named pipe through which PyTorch writes the trace `path`: Kineto writes beside it first
/// (libkineto/src/output_json.cpp, `ChromeTraceLogger`), and renames.
pub(crate) fn pipe_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}
