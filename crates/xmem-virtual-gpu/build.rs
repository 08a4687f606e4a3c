//! Compiles the native library, for Linux on x86-64 with glibc; elsewhere there is nothing to compile.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script reads what cargo tells it through the environment"
)]

use std::env;
use std::path::PathBuf;

const SOURCES: [&str; 18] = [
    "activity",
    "bounds",
    "capture",
    "completion",
    "config",
    "cudnn",
    "driver",
    "handles",
    "host",
    "images",
    "libraries",
    "memory",
    "nvml",
    "pool",
    "properties",
    "python",
    "runtime",
    "splits",
];

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
    println!("cargo::rerun-if-changed=native");
    println!("cargo::rustc-check-cfg=cfg(supported)");
    let of = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if (of("OS").as_str(), of("ARCH").as_str(), of("ENV").as_str()) != ("linux", "x86_64", "gnu") {
        return;
    }
    println!("cargo::rustc-cfg=supported");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut build = cc::Build::new();
    build.opt_level(2).debug(false).pic(true).std("gnu11").warnings(true).extra_warnings(true);
    for flag in HARDENING {
        build.flag_if_supported(flag);
    }
    let mut command = build.get_compiler().to_command();
    // Some distributions define it already, with another value.
    command.args(["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]);
    command
        .args([
            "-shared",
            "-fvisibility=hidden",
            "-Wl,-soname,libxmem-vgpu.so",
            "-Wl,-z,defs",
            // Addresses of functions are looked up at once, and cannot be changed afterwards.
            "-Wl,-z,relro,-z,now",
            "-Wl,-z,noexecstack",
            // Zig is asked for line tables by programs that call it.
            "-Wl,--strip-debug",
            "-o",
        ])
        .arg(out.join("libxmem-vgpu.so"))
        .args(SOURCES.map(|source| format!("native/{source}.c")))
        .args(["-ldl", "-lpthread"]);
    let status = command.status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "cannot compile the native library of xmem-virtual-gpu: a C compiler is needed: {command:?}"
    );
}
