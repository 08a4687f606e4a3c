//! The preloaded library, with programs that know nothing of it: they see what they would see without it, and the folder
//! stays as it was.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(clippy::disallowed_methods, reason = "tests make files and run programs")]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};
use xmem_overlay::{Choice, Method, Overlay, Writable};

const FILES: [(&str, &str); 6] = [
    ("best.pt", "trained"),
    ("checkpoints/1.pt", "1"),
    ("data/a", "a"),
    ("data/b", "b"),
    ("long.txt", "long"),
    ("inner/deep/leaf", "leaf"),
];

/// A folder of a user, with old files.
fn user() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["checkpoints", "data", "empty", "inner/deep"] {
        std::fs::create_dir_all(folder.path().join(name)).expect("made");
    }
    for (name, text) in FILES {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    for name in manifest(folder.path()).keys() {
        let file = std::fs::File::open(folder.path().join(name)).expect("there");
        file.set_modified(old).expect("set");
    }
    folder
}

/// Everything about the files in a folder but when they were read.
fn manifest(folder: &Path) -> BTreeMap<String, (u32, i64, u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(&inner).expect("listed") {
            let path = entry.expect("listed").path();
            let metadata = path.symlink_metadata().expect("there");
            let name = path.strip_prefix(folder).expect("inside").to_string_lossy().into_owned();
            let content =
                if metadata.is_file() { std::fs::read(&path).expect("read") } else { vec![] };
            found.insert(name, (metadata.mode(), metadata.mtime(), metadata.ino(), content));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

fn run(
    folder: &Path,
    program: &OsStr,
    arguments: &[OsString],
    overlay: Option<&Overlay>,
) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("HOME", folder);
    if let Some(overlay) = overlay {
        command.envs(overlay.environment(|_| None));
    }
    let output = command.output().expect("runs");
    let folder = folder.canonicalize().expect("there");
    String::from_utf8_lossy(&output.stdout).replace(&*folder.to_string_lossy(), "FOLDER")
}

#[test]
fn programs_see_what_they_write_and_the_files_stay_as_they_were() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preload.sh");
    let (program, arguments) = (OsStr::new("sh"), [script.into_os_string()]);
    let plain = user();
    let expected = run(plain.path(), program, &arguments, None);
    let covered = user();
    let before = manifest(covered.path());
    // Folders for temporary files are left as they are, but for those that an argument names.
    let named = [covered.path().as_os_str().to_owned()];
    let overlay = Overlay::prepare((program, &named), &Writable::Paths(vec![]), Choice::Auto, None);
    let overlay = overlay.expect("prepared");
    assert_eq!(overlay.method(), &Method::Preload(None));
    let seen = run(covered.path(), program, &arguments, Some(&overlay));
    assert_eq!(seen, expected);
    assert!(seen.contains("b'y\\n'"), "the script ended early: {seen}");
    assert!(manifest(covered.path()) == before, "the folder has changed");
    let kept = overlay.kept();
    assert!(kept.written > 100 && kept.removed > 2, "{kept:?}");
}

#[test]
fn each_kind_of_writer_does_what_it_does_without_the_library() {
    let overlay =
        Overlay::prepare((OsStr::new("sh"), &[]), &Writable::Paths(vec![]), Choice::Preload, None);
    let overlay = overlay.expect("prepared");
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preload.py");
    let library = overlay.folder().join("libxmem-overlay.so");
    let output = Command::new("python3").arg(judge).arg(library).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
