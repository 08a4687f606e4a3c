//! Folders of the machine that builds, which must not be in the program: they name its user, and make two builds of the
//! same sources differ.

use std::path::PathBuf;
use xmem_task::{Error, TaskError, repo};

/// A folder, and what stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remapped {
    pub(crate) folder: PathBuf,
    pub(crate) to: &'static str,
}

/// A program to be distributed names folders of this machine.
#[derive(Debug, thiserror::Error)]
#[error("the program names folders of this machine: {found}")]
struct BuildPathsError {
    found: String,
}

impl TaskError for BuildPathsError {}

/// The folders that compilers see, outermost first: the last one that fits is taken.
pub(crate) fn remapped(target: PathBuf) -> Vec<Remapped> {
    let home = std::env::home_dir();
    let of = |variable: &str, default: &str| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        named.or_else(|| Some(home.as_ref()?.join(default)))
    };
    let toolchain = PathBuf::from(repo::said("rustc", &["--print", "sysroot"]));
    let rows = [
        (home.clone(), "/home"),
        (of("CARGO_HOME", ".cargo"), "/cargo"),
        (of("RUSTUP_HOME", ".rustup"), "/rustup"),
        (Some(toolchain), "/rust"),
        (Some(repo::root().to_owned()), "/xmem"),
        (Some(target), "/target"),
    ];
    let rows = rows.into_iter().filter_map(|(folder, to)| Some(Remapped { folder: folder?, to }));
    rows.filter(|row| row.folder.components().count() > 1).collect()
}

/// The flags of rustc, for `CARGO_ENCODED_RUSTFLAGS`.
pub(crate) fn of_rust(rows: &[Remapped]) -> String {
    let flag = |row: &Remapped| format!("--remap-path-prefix={}={}", row.folder.display(), row.to);
    rows.iter().map(flag).collect::<Vec<_>>().join("\u{1f}")
}

/// The flags of the C compiler, for `CFLAGS`. A folder with a space is left out: `CFLAGS` has no quotes.
pub(crate) fn of_c(rows: &[Remapped]) -> String {
    let flag = |row: &Remapped| format!("-ffile-prefix-map={}={}", row.folder.display(), row.to);
    rows.iter().map(flag).filter(|flag| !flag.contains(' ')).collect::<Vec<_>>().join(" ")
}

/// Fails if a program has one of the folders in it.
pub(crate) fn check(program: &[u8], rows: &[Remapped]) -> Result<(), Error> {
    let found: Vec<String> = rows
        .iter()
        .map(|row| (row, count(program, row.folder.as_os_str().as_encoded_bytes())))
        .filter(|(_, count)| *count > 0)
        .map(|(row, count)| format!("{} ({count} times)", row.folder.display()))
        .collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(BuildPathsError { found: found.join(", ") }.into())
}

/// How often a folder is in a program: followed by a slash, as a part of a path.
fn count(program: &[u8], folder: &[u8]) -> usize {
    let wanted = [folder, b"/"].concat();
    let mut rest = program;
    let mut count = 0;
    while let Some(at) = rest.iter().position(|byte| *byte == wanted[0]) {
        rest = &rest[at..];
        count += usize::from(rest.starts_with(&wanted));
        rest = &rest[1..];
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_path_in_the_distributed_program_is_found() {
        let row = |folder: &str| Remapped { folder: folder.into(), to: "/x" };
        let rows = [row("/home/me/xmem"), row("/home/me/.cargo")];
        let program = b"\0/home/me/.cargo/registry/a.rs\0/x/b.rs\0/home/me/.cargo-other\0";
        let error = check(program, &rows).expect_err("found").to_string();
        assert!(error.contains("/home/me/.cargo (1 times)"), "{error}");
        assert!(!error.contains("/home/me/xmem"), "{error}");
        assert!(check(b"\0/x/a.rs\0/home/meadow/\0", &rows).is_ok());
    }

    #[test]
    fn the_flags_name_every_folder() {
        let rows = [
            Remapped { folder: "/home/me".into(), to: "/home" },
            Remapped { folder: "/a b".into(), to: "/xmem" },
        ];
        assert_eq!(
            of_rust(&rows),
            "--remap-path-prefix=/home/me=/home\u{1f}--remap-path-prefix=/a b=/xmem"
        );
        assert_eq!(of_c(&rows), "-ffile-prefix-map=/home/me=/home");
    }
}
