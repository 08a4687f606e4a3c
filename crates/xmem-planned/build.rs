//! Compiles the native library, for Linux with glibc; elsewhere there is nothing to compile.

use xmem_native_build::Library;

fn main() {
    Library {
        name: "libxmem-planned.so",
        cfg: "supported",
        machines: &["x86_64", "aarch64"],
        sources: &[
            "arena", "caching", "cuda", "deferred", "entry", "failure", "memory", "observed",
            "sequence", "shadow",
        ],
        // An exception of C++ passes through.
        flags: &["-fexceptions", "-fstack-protector-strong"],
        flags_if_known: &[],
        links: &["-ldl", "-lpthread"],
    }
    .compile();
}
