//! A virtual GPU in a folder: all files that a command needs, and its environment.

use crate::error::PrepareError;
use crate::examined::Examined;
use crate::log::Log;
use crate::{config, native, stand_ins};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_devices::Device;
use xmem_tempfiles::{create_private_folder, forbids_execution, write_private};
use xmem_types::Bytes;

/// A machine with GPUs that do not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualGpu {
    /// The device.
    pub device: Device,
    /// The number of devices of this kind, from 1 to 64.
    pub devices: usize,
    /// What a process can allocate on each.
    pub capacity: Capacity,
    /// When work is complete.
    pub completion: Completion,
}

/// When work on streams is complete, on which depends when PyTorch uses memory again that another stream had used, and
/// lets go of what collectives held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// At once: the GPU is faster than the host.
    #[default]
    AtOnce,
    /// When the host waits for it, at the latest at the end of the next iteration: the host runs ahead of the GPU.
    HostWaits,
}

/// The memory that a process can allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// That of the device: its memory less the context.
    OfDevice,
    /// So much; the device reports its own size.
    Of(Bytes),
    /// 4 TiB, so that a job that does not fit runs to its end. The device reports its own size.
    Unlimited,
}

/// What a command is started with to run on the virtual GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preload {
    /// Libraries to load before all others (`LD_PRELOAD`), in this order.
    pub libraries: Vec<PathBuf>,
    /// Variables to set.
    pub variables: Vec<(OsString, OsString)>,
    /// Variables to remove. `CUDA_VISIBLE_DEVICES` is among them: it selects real devices. A program that
    /// sets it itself selects virtual ones.
    pub removed: Vec<OsString>,
    /// What the user should know before the run.
    pub notes: Vec<Note>,
    /// The log, to be read after the run.
    pub log: Log,
}

/// A fact about the virtual GPU that limits what a run shows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Libraries that torch needs and that were not found: their stand-ins have the functions that torch
    /// needs, without versions.
    NotFound(Vec<String>),
    /// The process may not have the address space that is reserved for device memory.
    AddressSpaceLimit(Bytes),
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound(names) => {
                write!(f, "not found, guessed from what torch needs: {}", names.join(", "))
            }
            Self::AddressSpaceLimit(limit) => write!(
                f,
                "the limit of address space ({limit}) is small for a virtual GPU: \
                 remove it with `ulimit -v unlimited`"
            ),
        }
    }
}

/// The most devices of a machine (`MAX_DEVICES` in `native/vgpu.h`).
const MAX_DEVICES: usize = 64;

impl VirtualGpu {
    /// A machine with one device, and its capacity.
    #[must_use]
    pub fn new(device: Device) -> Self {
        Self { device, devices: 1, capacity: Capacity::OfDevice, completion: Completion::AtOnce }
    }

    /// Writes the native library, the stand-ins for the libraries that torch of an environment links, and the
    /// description of the device into `folder`, which is private and empty
    /// ([`PrivateFolder::for_programs`](xmem_tempfiles::PrivateFolder::for_programs)), and stays until the
    /// command has ended.
    ///
    /// # Errors
    /// If PyTorch has no kernels for the device, or a file cannot be written.
    pub fn prepare(&self, environment: &Examined, folder: &Path) -> Result<Preload, PrepareError> {
        let library = native::LIBRARY.ok_or(PrepareError::NotSupported)?;
        if !(1..=MAX_DEVICES).contains(&self.devices) {
            return Err(PrepareError::Devices(self.devices));
        }
        if folder.to_string_lossy().contains([' ', ':', '\n', '\t']) {
            return Err(PrepareError::Path(folder.to_path_buf()));
        }
        if forbids_execution(folder) {
            return Err(PrepareError::NoExecution(folder.to_path_buf()));
        }
        if let Some(kernels) = &environment.kernels
            && !kernels.run_on(self.device.compute_capability)
        {
            return Err(PrepareError::NoKernels {
                torch: environment.torch.clone(),
                device: Box::new(self.device.clone()),
                kernels: kernels.listed(),
            });
        }

        let native = folder.join(native::NAME);
        write(&native, library)?;
        let mut libraries = vec![native];
        for stand_in in &environment.stand_ins {
            let path = folder.join(&stand_in.name);
            write(&path, &stand_in.content)?;
            libraries.push(path);
        }
        // For the linker, which Triton calls with one of these names.
        let link = folder.join("link");
        create_private_folder(&link).map_err(|source| at(&link, source))?;
        for name in ["libcuda.so", stand_ins::DRIVER] {
            symlink(&folder.join(stand_ins::DRIVER), &link.join(name))?;
        }
        let log = folder.join("calls.log");
        write(&log, b"")?;
        let config = folder.join("device.conf");
        let text = config::text(self, &environment.requirements, &log);
        write(&config, text.as_bytes())?;

        let mut notes = Vec::new();
        if !environment.guessed.is_empty() {
            notes.push(Note::NotFound(environment.guessed.clone()));
        }
        notes.extend(address_space_limit().map(Note::AddressSpaceLimit));
        // What is compiled for the virtual GPU, and times that were measured on it, stay out of the caches of
        // real runs.
        let caches = ["TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"].map(|name| {
            let folder = folder.join(name.to_ascii_lowercase());
            (name.into(), folder.into_os_string())
        });
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("XMEM_VGPU_CONFIG".into(), config.into_os_string()),
            ("TRITON_LIBCUDA_PATH".into(), link.into_os_string()),
        ];
        variables.extend(caches);
        let removed = vec!["CUDA_VISIBLE_DEVICES".into()];
        Ok(Preload { libraries, variables, removed, notes, log: Log::new(log) })
    }
}

impl Preload {
    /// The value of `LD_PRELOAD`: these libraries, and then those that are in `existing`.
    #[must_use]
    pub fn ld_preload(&self, existing: Option<&OsStr>) -> OsString {
        let mut value = OsString::new();
        let existing = existing.filter(|value| !value.is_empty());
        for path in self.libraries.iter().map(|path| path.as_os_str()).chain(existing) {
            if !value.is_empty() {
                value.push(":");
            }
            value.push(path);
        }
        value
    }

    /// Changes the environment of a command so that it runs on the virtual GPU. `existing` is the value of
    /// `LD_PRELOAD` that it would have.
    pub fn apply(&self, command: &mut Command, existing: Option<&OsStr>) {
        command.env("LD_PRELOAD", self.ld_preload(existing));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        for name in &self.removed {
            command.env_remove(name);
        }
    }
}

fn at(path: &Path, source: io::Error) -> PrepareError {
    PrepareError::Write { path: path.to_path_buf(), source }
}

fn write(path: &Path, content: &[u8]) -> Result<(), PrepareError> {
    write_private(path, content).map_err(|source| at(path, source))
}

#[cfg(unix)]
fn symlink(original: &Path, link: &Path) -> Result<(), PrepareError> {
    std::os::unix::fs::symlink(original, link).map_err(|source| at(link, source))
}
#[cfg(not(unix))]
fn symlink(_: &Path, link: &Path) -> Result<(), PrepareError> {
    Err(at(link, io::ErrorKind::Unsupported.into()))
}

/// The limit of address space (`ulimit -v`), if there is one.
#[cfg(target_os = "linux")]
fn address_space_limit() -> Option<Bytes> {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    let (limit, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (limit != RLIM_INFINITY).then_some(Bytes(limit))
}
#[cfg(not(target_os = "linux"))]
fn address_space_limit() -> Option<Bytes> {
    None
}
