//! Every type that the API hands out can be named from it.

#![expect(clippy::disallowed_methods, reason = "the test reads the manifest of the crate")]

use std::path::Path;

/// A value of the API consists of types of the crates below the facade. Within each crate, the lint
/// `unnameable_types` sees to it that public types can be named.
#[test]
fn every_crate_below_the_facade_can_be_reached_from_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |path: &str| std::fs::read_to_string(root.join(path)).expect("a readable file");
    let (manifest, library) = (text("Cargo.toml"), text("src/lib.rs"));
    let dependencies = manifest.split("[dependencies]").nth(1).expect("dependencies");
    let dependencies = dependencies.split("\n[").next().expect("an end");
    let ours: Vec<&str> = dependencies
        .lines()
        .filter_map(|line| line.strip_prefix("xmem-")?.strip_suffix(".workspace = true"))
        .collect();
    assert!(ours.len() > 5, "the manifest is read: {ours:?}");
    for name in ours {
        let export = format!("pub use xmem_{name} as {name};");
        assert!(library.contains(&export), "{export}");
    }
}

/// Names that users need besides the builder and the answer.
#[test]
fn parts_of_answers_and_snapshots_have_names() {
    fn segments(snapshot: &xmem::snapshot::Snapshot) -> &[xmem::snapshot::Segment] {
        &snapshot.segments
    }
    fn sources(device: &xmem::Device) -> &xmem::devices::Sources {
        &device.sources
    }
    fn first(
        notes: &xmem::types::Diagnostics,
    ) -> Option<(&xmem::types::Diagnostic, Option<xmem::types::Location>)> {
        notes.iter().next().map(|note| (note, note.first))
    }
    assert!(segments(&xmem::snapshot::Snapshot::default()).is_empty());
    assert!(!sources(xmem::find("a100-40g").expect("built in")).memory.is_empty());
    assert!(first(&xmem::types::Diagnostics::default()).is_none());
}
