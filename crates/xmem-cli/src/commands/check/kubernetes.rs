//! A manifest of Kubernetes: the GPUs of its pods, and the annotations that it gets.

use super::error::CheckFailure;
use crate::config::Config;
use crate::error::CliError;
use crate::global::Verbosity;
use crate::input::{self, InputFailure, Kind};
use crate::output;
use crate::terminal::{note, shown};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use xmem::Bytes;
use xmem_gate::kubernetes::{Annotations, Placement, find_templates, placement};
use xmem_gate::{AnnotationPlace, Manifest, PathStep, Rules, Unresolved};
use xmem_report::check::CheckDocument;

/// A manifest with pods that ask for GPUs.
#[derive(Debug)]
pub(super) struct Pods {
    file: PathBuf,
    manifest: Manifest,
    /// The places of the annotations of its pod templates.
    places: Vec<AnnotationPlace>,
    /// The devices of the template that gets the smallest one.
    pub(super) placement: Placement,
    /// The rules of its namespace.
    pub(super) rules: Rules,
}

/// The namespace of an object that names none.
const NAMESPACE: &str = "default";

impl Pods {
    /// Reads a manifest.
    pub(super) fn read(
        file: &Path,
        namespace: Option<&str>,
        config: &Config,
    ) -> Result<Self, CliError> {
        let bytes = input::raw(file, Kind::Script, None)?;
        let text = String::from_utf8_lossy(&bytes);
        let manifest = Manifest::parse(&text)
            .map_err(|source| CheckFailure::Manifest { path: file.to_owned(), source })?;
        let site = &config.site;
        let unresolved =
            |source| CheckFailure::Unresolved { source, site: config.site_file.clone() };
        let mut places = Vec::new();
        let mut found: Option<(Placement, Rules)> = None;
        for (document, value) in manifest.values().iter().enumerate() {
            let templates = find_templates(value, &|group, kind| site.templates_of(group, kind));
            for template in templates {
                let object = match template.path.as_slice() {
                    [PathStep::Key(items), PathStep::Index(at), ..] if items == "items" => {
                        &value["items"][*at]
                    }
                    _ => value,
                };
                let own = object.pointer("/metadata/namespace").and_then(|name| name.as_str());
                let rules = site.rules_of_namespace(namespace.or(own).unwrap_or(NAMESPACE));
                let Some(placed) = placement(&template, site, &rules).map_err(unresolved)? else {
                    continue;
                };
                places.push(template.annotation_place(document));
                let smallest = |placed: &Placement| placed.devices.first().map(|d| d.memory);
                if found.as_ref().is_none_or(|(known, _)| smallest(&placed) < smallest(known)) {
                    found = Some((placed, rules));
                }
            }
        }
        let (placement, rules) = found.ok_or_else(|| unresolved(Unresolved::NoGpu))?;
        Ok(Self { file: file.to_owned(), manifest, places, placement, rules })
    }

    /// Writes what the job needs into the manifest: the most of all ranks.
    pub(super) fn annotate(
        &self,
        answers: &[(PathBuf, &CheckDocument)],
        verbosity: Verbosity,
    ) -> Result<(), CliError> {
        let need = |document: &CheckDocument| {
            document.need_bytes.map(|need| need - document.device.context_bytes.min(need))
        };
        let needs: Option<Vec<u64>> = answers.iter().map(|(_, document)| need(document)).collect();
        let most = needs.filter(|needs| !needs.is_empty()).and_then(|needs| {
            let most = needs.iter().enumerate().max_by_key(|(_, need)| **need)?;
            Some((&answers[most.0], *most.1))
        });
        let Some(((trace, document), peak)) = most else {
            return Err(CheckFailure::NothingToWrite { path: self.file.clone() }.into());
        };
        let annotations = Annotations {
            peak: Some(Bytes(peak)),
            context: Some(Bytes(document.device.context_bytes)),
            trace: Some(sha256(trace)?),
        };
        let text = self
            .manifest
            .annotated(&self.places, &annotations.entries())
            .map_err(|source| CheckFailure::Annotate { path: self.file.clone(), source })?;
        output::bytes(Some(&self.file), |out| Ok(out.write_all(text.as_bytes())?))?;
        let (count, s) = (self.places.len(), if self.places.len() == 1 { "" } else { "s" });
        let written =
            format!("wrote `{}`: annotations of {count} pod template{s}", shown(&self.file));
        note(&written, verbosity);
        Ok(())
    }
}

/// The digest of a file as it is, compressed or not.
fn sha256(file: &Path) -> Result<String, InputFailure> {
    let digest = || {
        let mut hasher = Sha256::new();
        let mut reader = BufReader::with_capacity(1 << 16, std::fs::File::open(file)?);
        loop {
            let bytes = reader.fill_buf()?;
            let count = bytes.len();
            if count == 0 {
                break;
            }
            hasher.update(bytes);
            reader.consume(count);
        }
        let bytes = hasher.finalize();
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    };
    digest().map_err(|source| InputFailure::Io { path: file.to_owned(), source })
}
