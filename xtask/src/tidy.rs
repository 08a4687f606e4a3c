//! `cargo xtask tidy`: rules of this repository that no compiler checks.
//!
//! Each check is a function from texts to findings, so that it is tested on small texts; only this
//! module reads the repository.

mod cycles;
mod findings;
mod graph;
mod licenses;
pub(crate) mod links;
mod names;
mod prose;
mod provenance;
mod sources;
mod stages;
mod words;

use findings::Findings;
use std::path::Path;
use xmem_task::{Error, repo};

const ARCHITECTURE: &str = "docs/architecture.md";
const SUMMARY: &str = "docs/SUMMARY.md";
const TRACES: &str = "traces";
const TRACES_README: &str = "traces/README.md";
const PROFILES: &str = "crates/xmem-devices/data";

/// Runs every check and prints what they find.
pub(crate) fn run() -> Result<(), Error> {
    let files = repo::files()?;
    let mut findings = Findings::default();

    let metadata = repo::resolved_metadata()?;
    graph::check(&repo::text(Path::new(ARCHITECTURE))?, &metadata, &mut findings);
    licenses::check(&repo::text(Path::new(licenses::POLICY))?, &metadata, &mut findings);

    let mut documents = Vec::new();
    let mut rust = Vec::new();
    let mut cases = Vec::new();
    for path in &files {
        let name = path.to_string_lossy();
        match path.extension().and_then(|e| e.to_str()) {
            Some("rs") => rust.push((name.to_string(), repo::text(path)?)),
            Some("ts" | "mjs") => {
                sources::check_page(&name, &repo::text(path)?, &mut findings);
            }
            Some("md") => documents.push((name.to_string(), repo::text(path)?)),
            Some("toml") if name.starts_with(PROFILES) => {
                provenance::check_data(&name, &repo::text(path)?, &mut findings);
            }
            _ => {}
        }
        if let Some(case) = name.strip_prefix("traces/").and_then(|n| n.strip_suffix("/meta.toml"))
        {
            cases.push((case.to_owned(), repo::text(path)?));
        }
        if words::is_searched(&name) {
            words::check(&name, &repo::text(path)?, &mut findings);
        }
    }

    for (name, text) in &rust {
        sources::check(name, text, &mut findings);
        sources::check_text(name, text, &mut findings);
    }
    names::check(&rust, &mut findings);
    cycles::check(&rust, &repo::text(Path::new(cycles::KNOWN))?, &mut findings);

    for (case, meta) in &cases {
        let expected = Path::new(TRACES).join(case).join("expected.toml");
        let expected = if files.contains(&expected) { Some(repo::text(&expected)?) } else { None };
        provenance::check_case(case, meta, expected.as_deref(), &mut findings);
    }
    provenance::check_coverage(&repo::text(Path::new(TRACES_README))?, &cases, &mut findings);
    provenance::check_size(&sizes(&files)?, &mut findings);

    let exists = |path: &Path| repo::root().join(path).exists();
    for (name, text) in &documents {
        links::check(name, text, exists, &mut findings);
        if prose::is_checked(name) {
            prose::check(name, text, &mut findings);
        }
    }
    stages::check(&repo::text(Path::new(stages::FILE))?, exists, &mut findings);
    links::check_summary(&repo::text(Path::new(SUMMARY))?, &documents, &mut findings);

    findings.conclude()
}

/// Size of each file in the traces' folder.
fn sizes(files: &[std::path::PathBuf]) -> Result<Vec<(String, u64)>, Error> {
    files
        .iter()
        .filter(|path| path.starts_with(TRACES))
        .map(|path| {
            let data = std::fs::metadata(repo::root().join(path)).map_err(Error::file(path))?;
            Ok((path.to_string_lossy().into_owned(), data.len()))
        })
        .collect()
}
