//! Compiles the native libraries, for Linux with glibc; elsewhere there is nothing to compile.

use xmem_native_build::Library;

const MACHINES: &[&str] = &["x86_64", "aarch64"];

fn main() {
    Library {
        name: "libxmem-planned.so",
        cfg: "supported",
        machines: MACHINES,
        sources: &[
            "arena",
            "caching",
            "counters",
            "cuda",
            "deferred",
            "entry",
            "failure",
            "following",
            "live",
            "memory",
            "observed",
            "sequence",
            "shadow",
            "tree",
        ],
        // An exception of C++ passes through.
        flags: &["-fexceptions", "-fstack-protector-strong"],
        flags_if_known: &[],
        links: &["-ldl", "-lpthread"],
    }
    .compile();
    Library {
        name: "libxmem-planned-cpu.so",
        cfg: "supported",
        machines: MACHINES,
        sources: &[
            "counters",
            "cpu/arena",
            "cpu/entry",
            "cpu/table",
            "following",
            "live",
            "observed",
            "sequence",
            "shadow",
            "tree",
        ],
        flags: &["-DXMEM_PLANNED_CPU", "-fstack-protector-strong"],
        flags_if_known: &[],
        links: &["-lpthread"],
    }
    .compile();
}
