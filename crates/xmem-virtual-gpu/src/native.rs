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
const OWN: [&str; 4] = ["drop_calls", "iteration", "text", "unimplemented"];

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

    /// Program headers (elf(5), `Elf64_Phdr`): type and flags of each.
    fn segments(file: &[u8]) -> Vec<(u32, u32)> {
        let number = |at: usize, size: usize| {
            file[at..at + size].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let (first, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        let rows = (0..count).map(|row| first + row * size);
        rows.map(|at| (number(at, 4) as u32, number(at + 4, 4) as u32)).collect()
    }

    #[test]
    fn the_library_is_built_with_hardening() {
        const PT_GNU_STACK: u32 = 0x6474_e551;
        const PT_GNU_RELRO: u32 = 0x6474_e552;
        const EXECUTABLE: u32 = 1;
        const WRITABLE: u32 = 2;
        let file = LIBRARY.expect("supported");
        let segments = segments(file);
        assert!(segments.iter().any(|(kind, _)| *kind == PT_GNU_RELRO), "{segments:?}");
        let stack = segments.iter().find(|(kind, _)| *kind == PT_GNU_STACK).expect("a stack");
        assert_eq!(stack.1 & EXECUTABLE, 0, "the stack is executable");
        let both = EXECUTABLE | WRITABLE;
        assert!(segments.iter().all(|(_, flags)| flags & both != both), "{segments:?}");
        let has = |name: &[u8]| file.windows(name.len()).any(|text| text == name);
        assert!(has(b"__stack_chk_fail"), "no stack protector");
    }

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
