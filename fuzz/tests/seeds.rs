//! The targets run on their first inputs, whole and cut, and each has its program.
#![expect(clippy::disallowed_methods, reason = "inputs and manifest are files")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use xmem_fuzz::{TARGETS, check, with_other_numbers};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder; none if it is not there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

#[test]
fn every_target_holds_on_its_seeds() {
    let mut with_seeds = BTreeSet::new();
    for (target, _) in TARGETS {
        for file in files(&here().join("seeds").join(target)) {
            let data = std::fs::read(&file).expect("a seed");
            with_seeds.insert(target);
            for length in [data.len(), data.len() / 2, 0] {
                check(target, &data[..length]);
            }
        }
    }
    let folders = std::fs::read_dir(here().join("seeds")).expect("the folder of seeds");
    let folders: BTreeSet<String> = folders
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into())
        .collect();
    assert_eq!(folders, with_seeds.into_iter().map(str::to_owned).collect());
}

#[test]
fn every_target_has_its_program() {
    let manifest = std::fs::read_to_string(here().join("Cargo.toml")).expect("the manifest");
    let mut programs = BTreeSet::new();
    for file in files(&here().join("fuzz_targets")) {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("a program");
        assert!(text.contains(&format!("xmem_fuzz::check(\"{name}\", data)")), "{name}");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        programs.insert(name);
    }
    assert_eq!(programs, TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
}

#[test]
fn a_mutation_of_numbers_keeps_the_rest() {
    let text = b"{\"a\": 1, \"b\": [2, 3]}";
    assert_eq!(with_other_numbers(text, 4), None);
    assert_eq!(with_other_numbers(b"{}", 1), None);
    let changed = with_other_numbers(text, 1).expect("numbers");
    assert_eq!(changed, b"{\"a\": 0, \"b\": [0, 3]}");
}
