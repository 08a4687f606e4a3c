//! The stubs of libraries, loaded before cuDNN looks for them.

use crate::stubs::{self, Stub};
use libloading::Library;
use nix::libc::{MFD_CLOEXEC, SYS_memfd_create, syscall};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, RawFd};
use std::path::Path;
use xmem_elf::{Definition, Machine, StandIn, Symbol, WriteError};

/// The reason why the stub libraries cannot be put in place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PreloadError {
    #[error("cannot write the stub of a library")]
    Write(#[source] io::Error),
    #[error("cannot make the stub of a library")]
    Make(#[source] WriteError),
    #[error("cannot load the stub of a library")]
    Load(#[source] libloading::Error),
}

/// Loads the [stubs](stubs::all) of the libraries of a GPU machine, so that cuDNN finds them under
/// their names (`DT_SONAME`).
///
/// The stubs are files in memory, which have no place in a folder: other users cannot change them,
/// and nothing is left behind.
pub(crate) fn preload_stubs() -> Result<(), PreloadError> {
    // All stay open until the last is loaded, as the linker knows a library by its path, too.
    let mut files = Vec::new();
    for stub in stubs::all() {
        for name in stub.names {
            let content = content(name, &stub).map_err(PreloadError::Make)?;
            let mut file = memory_file().map_err(PreloadError::Write)?;
            file.write_all(&content).map_err(PreloadError::Write)?;
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            // SAFETY: only this process has the file. It has no initializers and no code; its symbols are
            // functions of this program, which is never unloaded.
            unsafe { preload(Path::new(&path)) }.map_err(PreloadError::Load)?;
            files.push(file);
        }
    }
    Ok(())
}

/// A file in memory. The function of the C library that makes one came with glibc 2.27, the system call with Linux 3.17.
fn memory_file() -> io::Result<File> {
    // SAFETY: the name ends in a zero byte.
    let file = unsafe { syscall(SYS_memfd_create, c"xmem-stub".as_ptr(), MFD_CLOEXEC) };
    let file = RawFd::try_from(file).ok().filter(|file| *file >= 0);
    let file = file.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the file was opened above, and nothing else has it.
    Ok(unsafe { File::from_raw_fd(file) })
}

/// The file of a stub library. Its symbols are absolute addresses of this process, which the dynamic linker
/// of glibc takes as they are since 2.28 (`SYMBOL_ADDRESS` in `sysdeps/generic/ldsodefs.h`).
fn content(name: &str, stub: &Stub) -> Result<Vec<u8>, WriteError> {
    let symbols = stub.functions.iter().map(|function| Symbol {
        name: function.name.to_owned(),
        version: None,
        definition: Definition::Absolute(function.address()),
    });
    let machine = if cfg!(target_arch = "x86_64") { Machine::X86_64 } else { Machine::Aarch64 };
    let (needed, search) = (Vec::new(), None);
    let symbols = symbols.collect();
    StandIn { machine, name: name.to_owned(), needed, search, symbols }.to_bytes()
}

/// Loads a library and never unloads it.
///
/// # Safety
/// The initializers of the library must be sound to run in this process, and so must its functions for
/// every library loaded later that calls them under its name.
unsafe fn preload(path: &Path) -> Result<(), libloading::Error> {
    // SAFETY: by the caller.
    let library = unsafe { Library::new(path) }?;
    let _ = std::mem::ManuallyDrop::new(library);
    Ok(())
}
