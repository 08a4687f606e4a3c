//! The errors of preparing a virtual GPU.

use crate::environment::EnvironmentError;
use std::io;
use std::path::PathBuf;
use xmem_devices::Device;
use xmem_elf::WriteError;

/// The reason why a virtual GPU cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// Another system.
    #[error("the virtual GPU works on Linux on x86-64 with glibc only")]
    NotSupported,
    /// A number of devices that cannot be.
    #[error("{0} devices: choose from 1 to 64")]
    Devices(usize),
    /// The environment cannot be used.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// PyTorch was compiled for other devices.
    #[error(
        "{torch} has no kernels for compute capability {} ({}), only for {kernels}",
        device.compute_capability, device.title
    )]
    NoKernels {
        /// The package and its version.
        torch: String,
        /// The device.
        device: Box<Device>,
        /// The compute capabilities that it has kernels for.
        kernels: String,
    },
    /// A path that `LD_PRELOAD` cannot hold.
    #[error(
        "`{}` has a space or a colon, which LD_PRELOAD cannot hold: set TMPDIR to another folder",
        .0.display()
    )]
    Path(PathBuf),
    /// Libraries in the folder cannot be loaded.
    #[error(
        "programs cannot be run from `{}`, as it is mounted with noexec: set TMPDIR to another folder",
        .0.display()
    )]
    NoExecution(PathBuf),
    /// A stand-in cannot be made.
    #[error("cannot make a stand-in for `{library}`")]
    StandIn {
        /// The library.
        library: String,
        /// The reason.
        #[source]
        source: WriteError,
    },
    /// A file cannot be written.
    #[error("cannot write `{}`", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}
