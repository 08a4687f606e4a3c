//! Compiles the native library, for Linux on x86-64 with glibc; elsewhere there is nothing to compile.

use xmem_native_build::Library;

/// Flags against what an error in the library could be used for: it runs in the user's process. Those that the compiler
/// lacks are left out.
const HARDENING: [&str; 6] = [
    "-fstack-protector-strong",
    "-fstack-clash-protection",
    "-fcf-protection",
    "-Wformat",
    "-Werror=format-security",
    "-ftrivial-auto-var-init=zero",
];

fn main() {
    Library {
        name: "libxmem-vgpu.so",
        cfg: "supported",
        machines: &["x86_64"],
        sources: &[
            "activity",
            "bounds",
            "capture",
            "completion",
            "config",
            "cudnn",
            "driver",
            "fft",
            "fresh",
            "handles",
            "host",
            "images",
            "libraries",
            "memory",
            "modules",
            "norms",
            "nvml",
            "pool",
            "properties",
            "python",
            "random",
            "recurrent",
            "runtime",
            "solver",
            "solver_calls",
            "splits",
        ],
        // Some distributions define it already, with another value.
        flags: &["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"],
        flags_if_known: &HARDENING,
        links: &["-ldl", "-lpthread"],
    }
    .compile();
}
