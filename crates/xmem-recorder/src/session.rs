//! The private folder through which the hook and this process communicate.
//!
//! Python executes files of it, so that only the user can open it, whatever the umask.

use crate::control::Control;
use crate::hook::{self, HOOK};
use crate::message::{ProcessId, StopReason};
use crate::rank::LoneRank;
use crate::request::{Engine, Request};
use crate::settings::Settings;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use xmem_overlay::Overlay;
use xmem_tempfiles::{PrivateFolder, create_private_folder, write_private};

/// The variable that names the folder in the environment of the command.
pub(crate) const VARIABLE: &str = "XMEM_RECORDER";

/// The variable of glibc's size from which on `malloc` maps memory, which `free` returns to the system at once.
const MMAP_THRESHOLD: &str = "MALLOC_MMAP_THRESHOLD_";

/// The size with which glibc starts (mallopt(3), `M_MMAP_THRESHOLD`). Without the variable, it grows with each
/// mapped block that is freed, up to 32 MiB: tensors below it then come from a heap whose holes stay resident.
const MMAP_THRESHOLD_BYTES: &str = "131072";

/// The variables with which users set how `malloc` returns memory (mallopt(3)): any of them keeps the threshold
/// from growing.
const MALLOC_VARIABLES: [&str; 4] =
    [MMAP_THRESHOLD, "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_"];

/// The folder of the hook, which is on the command's `PYTHONPATH`.
const PATH: &str = "path";

/// The folder in which Python keeps the compiled form of `sitecustomize.py`. It would make it with the umask.
const BYTECODE: &str = "__pycache__";

/// The folder, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    folder: PrivateFolder,
}

impl Session {
    /// Makes the folder, with all files that the hook needs, and its control pipe.
    pub(crate) fn open(request: &Request, overlay: &Overlay) -> io::Result<(Self, Control)> {
        let folder = PrivateFolder::new()?;
        let root = folder.path();
        unpack(&root.join(PATH))?;
        let settings = serde_json::to_vec(&Settings::of(request, overlay))?;
        write_private(&root.join("settings.json"), &settings)?;
        let control = Control::make(&root.join("control"))?;
        Ok((Self { folder }, control))
    }

    /// Its path.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The variables for the command's environment; `present` looks a variable up in that of this process.
    pub(crate) fn environment(
        &self,
        request: &Request,
        present: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        let mut first = self.folder().join(PATH).into_os_string();
        if let Some(rest) = present("PYTHONPATH").filter(|rest| !rest.is_empty()) {
            first.push(":");
            first.push(rest);
        }
        let mut variables = vec![("PYTHONPATH", first), (VARIABLE, self.folder().into())];
        variables.extend(mmap_threshold(request.engine, present));
        let place = request.rank.into_iter().flat_map(LoneRank::variables);
        variables.extend(place.map(|(name, value)| (name, value.into())));
        variables
    }

    /// The arguments of a command, with the hook's folder in front of a `PYTHONPATH` that `env` is to set.
    pub(crate) fn arguments(&self, program: &OsStr, arguments: &[OsString]) -> Vec<OsString> {
        const NAME: &str = "PYTHONPATH=";
        if Path::new(program).file_name() != Some(OsStr::new("env")) {
            return arguments.to_vec();
        }
        let with_hook = |argument: &OsString| {
            let value = argument.to_str()?.strip_prefix(NAME)?;
            let mut all = OsString::from(NAME);
            all.push(self.folder().join(PATH));
            all.push(":");
            all.push(value);
            Some(all)
        };
        arguments
            .iter()
            .map(|argument| with_hook(argument).unwrap_or_else(|| argument.clone()))
            .collect()
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

/// Writes the hook into a folder that it makes.
fn unpack(folder: &Path) -> io::Result<()> {
    create_private_folder(folder)?;
    for name in hook::folders().into_iter().chain([Path::new(BYTECODE)]) {
        create_private_folder(&folder.join(name))?;
    }
    for (name, content) in HOOK {
        write_private(&folder.join(name), content.as_bytes())?;
    }
    Ok(())
}

/// The setting of `malloc`, unless the user has one. A virtual GPU keeps the memory of tensors as address space.
fn mmap_threshold(
    engine: Engine,
    present: impl Fn(&str) -> Option<OsString>,
) -> Option<(&'static str, OsString)> {
    let is_set = MALLOC_VARIABLES.iter().any(|name| present(name).is_some())
        || present("GLIBC_TUNABLES").is_some_and(|t| t.to_string_lossy().contains("glibc.malloc."));
    (engine != Engine::VirtualGpu && !is_set).then(|| (MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES.into()))
}

/// The named pipe through which PyTorch writes the trace `path`: Kineto writes beside it first
/// (libkineto/src/output_json.cpp, `ChromeTraceLogger`), and renames.
pub(crate) fn pipe_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hook_is_unpacked_with_the_packages_in_it() {
        let folder = PrivateFolder::new().expect("a folder");
        let path = folder.path().join(PATH);
        unpack(&path).expect("unpacked");
        for (name, content) in HOOK {
            let found = std::fs::read_to_string(path.join(name)).expect(name);
            assert_eq!(&found, content, "{name}");
        }
        assert!(HOOK.iter().any(|(name, _)| name.split('/').count() > 2), "no package is nested");
    }

    #[test]
    fn malloc_returns_memory_unless_the_user_sets_it() {
        for (engine, variable, is_set) in [
            (Engine::Cpu, ("HOME", "/root"), true),
            (Engine::Auto, ("GLIBC_TUNABLES", "glibc.cpu.x86_shstk=on"), true),
            (Engine::VirtualGpu, ("HOME", "/root"), false),
            (Engine::Cpu, ("MALLOC_MMAP_THRESHOLD_", "65536"), false),
            (Engine::Cpu, ("MALLOC_TRIM_THRESHOLD_", "0"), false),
            (Engine::Cpu, ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=1048576"), false),
        ] {
            let present = |name: &str| (name == variable.0).then(|| variable.1.into());
            let setting = mmap_threshold(engine, present);
            assert_eq!(setting.is_some(), is_set, "{engine:?} {variable:?}: {setting:?}");
        }
    }
}
