//! Compiles the preloaded library, for Linux with glibc; elsewhere there is nothing to compile.

use xmem_native_build::Library;

fn main() {
    Library {
        name: "libxmem-overlay.so",
        cfg: "preload",
        machines: &["x86_64", "aarch64"],
        sources: &[
            "changes", "copies", "listings", "names", "opens", "paths", "programs", "reads",
            "twins", "walk",
        ],
        flags: &["-fstack-protector-strong"],
        flags_if_known: &[],
        links: &["-ldl"],
    }
    .compile();
}
