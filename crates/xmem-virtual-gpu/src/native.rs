//! The native library and the functions that it has.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::LazyLock;
use xmem_elf::Library;

/// The file, if this system is supported.
#[cfg(supported)]
pub(crate) const LIBRARY: Option<&[u8]> =
    Some(include_bytes!(concat!(env!("OUT_DIR"), "/libxmem-vgpu.so")));
#[cfg(not(supported))]
pub(crate) const LIBRARY: Option<&[u8]> = None;

/// Its name (`DT_SONAME`), and that of the file.
pub(crate) const NAME: &str = "libxmem-vgpu.so";

/// The function that logs the name of a call that is not implemented.
pub(crate) const REPORT: &str = "vgpu_unimplemented";

/// The function that returns a text, for functions that return one.
pub(crate) const TEXT: &str = "vgpu_text";

/// Names of its functions begin with this; what follows is the name of the function of CUDA.
const PREFIX: &str = "vgpu_";

/// Functions that are not CUDA's.
const OWN: [&str; 4] = ["drop_c_calls", "iteration", "text", "unimplemented"];

static FUNCTIONS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let library = LIBRARY.map(Cursor::new).and_then(|file| Library::read(file).ok());
    let exports = library.map(|library| library.exports).unwrap_or_default();
    exports
        .iter()
        .filter_map(|export| export.name.strip_prefix(PREFIX))
        .filter(|name| !OWN.contains(name))
        .map(str::to_owned)
        .collect()
});

/// The functions of CUDA that are implemented.
pub(crate) fn functions() -> &'static BTreeSet<String> {
    &FUNCTIONS
}

/// The function of the native library that implements a function of CUDA. The variants for a default
/// stream of each thread are the functions themselves.
pub(crate) fn implementation(name: &str) -> Option<String> {
    let plain = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
    functions().contains(plain).then(|| format!("{PREFIX}{plain}"))
}

#[cfg(all(test, supported))]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_names_in_cuda() {
        for (name, expected) in [
            ("cudaMalloc", Some("vgpu_cudaMalloc")),
            ("cudaMemcpyAsync_ptsz", Some("vgpu_cudaMemcpyAsync")),
            ("__cudaRegisterFatBinary", Some("vgpu___cudaRegisterFatBinary")),
            ("cudaNoSuchFunction", None),
            ("text", None),
        ] {
            assert_eq!(implementation(name).as_deref(), expected, "{name}");
        }
    }
}
