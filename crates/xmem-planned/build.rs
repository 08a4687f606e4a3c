//! Compiles the native library, for Linux with glibc; elsewhere there is nothing to compile.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script reads what cargo tells it through the environment"
)]

use std::env;
use std::path::PathBuf;

const SOURCES: [&str; 10] = [
    "arena", "caching", "cuda", "deferred", "entry", "failure", "memory", "observed", "sequence",
    "shadow",
];

fn main() {
    println!("cargo::rerun-if-changed=native");
    println!("cargo::rustc-check-cfg=cfg(supported)");
    let of = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_known = matches!(of("ARCH").as_str(), "x86_64" | "aarch64");
    if !is_known || (of("OS").as_str(), of("ENV").as_str()) != ("linux", "gnu") {
        return;
    }
    println!("cargo::rustc-cfg=supported");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut build = cc::Build::new();
    build.opt_level(2).debug(false).pic(true).std("gnu11").warnings(true).extra_warnings(true);
    let mut command = build.get_compiler().to_command();
    command
        .args([
            "-shared",
            // An exception of C++ passes through.
            "-fexceptions",
            "-fvisibility=hidden",
            "-fstack-protector-strong",
            "-Wl,-soname,libxmem-planned.so",
            // Debug information of the machine that builds it names its folders.
            "-Wl,--strip-debug",
            "-Wl,-z,defs,-z,relro,-z,now,-z,noexecstack",
            "-o",
        ])
        .arg(out.join("libxmem-planned.so"))
        .args(SOURCES.map(|source| format!("native/{source}.c")))
        .args(["-ldl", "-lpthread"]);
    let status = command.status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "cannot compile the native library of xmem-planned: a C compiler is needed: {command:?}"
    );
}
