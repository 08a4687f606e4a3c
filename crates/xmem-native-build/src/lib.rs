//! Shared libraries in C that other crates carry, compiled by their build scripts.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a build script reads what cargo tells it through the environment, and answers on standard output"
)]

use std::env;
use std::path::PathBuf;

/// A shared library of the calling crate, for Linux with glibc.
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    /// The name of its file, in `OUT_DIR`, and its `DT_SONAME`.
    pub name: &'a str,
    /// What is set for the crate where the library is compiled.
    pub cfg: &'a str,
    /// The machines that it is compiled for (`CARGO_CFG_TARGET_ARCH`).
    pub machines: &'a [&'a str],
    /// The files in `native/`, without `.c`.
    pub sources: &'a [&'a str],
    /// Flags of the compiler.
    pub flags: &'a [&'a str],
    /// Flags that are left out where the compiler lacks them.
    pub flags_if_known: &'a [&'a str],
    /// Libraries to be linked.
    pub links: &'a [&'a str],
}

impl Library<'_> {
    /// Compiles it, and sets its cfg; elsewhere than on its systems there is nothing to compile.
    ///
    /// # Panics
    /// If there is no C compiler, or it fails; if this is not called by a build script.
    pub fn compile(&self) {
        println!("cargo::rerun-if-changed=native");
        println!("cargo::rustc-check-cfg=cfg({})", self.cfg);
        let of = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
        let is_known = self.machines.contains(&of("ARCH").as_str());
        if !is_known || (of("OS").as_str(), of("ENV").as_str()) != ("linux", "gnu") {
            return;
        }
        println!("cargo::rustc-cfg={}", self.cfg);
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        let mut build = cc::Build::new();
        build.opt_level(2).debug(false).pic(true).std("gnu11").warnings(true).extra_warnings(true);
        for flag in self.flags_if_known {
            build.flag_if_supported(flag);
        }
        let mut command = build.get_compiler().to_command();
        command
            .args(self.flags)
            .args(["-shared", "-fvisibility=hidden"])
            .arg(format!("-Wl,-soname,{}", self.name))
            // Addresses of functions are looked up at once, and cannot be changed afterwards.
            .arg("-Wl,-z,defs,-z,relro,-z,now,-z,noexecstack")
            // Zig is asked for line tables by programs that call it.
            .args(["-Wl,--strip-debug", "-o"])
            .arg(out.join(self.name))
            .args(self.sources.iter().map(|source| format!("native/{source}.c")))
            .args(self.links);
        let status = command.status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "cannot compile {}: a C compiler is needed: {command:?}",
            self.name
        );
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
