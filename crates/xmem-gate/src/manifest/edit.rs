//! Changes of a manifest's text: annotations in the metadata of a pod template.

use super::error::ManifestError;
use super::tree::{Key, MapStyle, Node, NodeKind};
use crate::template_path::PathStep;
use std::ops::Range;

/// Text that replaces a part of the manifest, or is put between two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    at: Range<usize>,
    text: String,
}

/// The map of annotations, in that of a place.
const ANNOTATIONS: &str = "annotations";

/// The indent of a map that is made.
const INDENT: usize = 2;

/// The changes that put annotations into the map `holder` of the template at `path`.
pub(super) fn annotate(
    text: &str,
    document: &Node,
    (path, holder): (&[PathStep], &str),
    annotations: &[(&str, String)],
) -> Result<Vec<Edit>, ManifestError> {
    let mut template = document;
    refuse_shared(template)?;
    for step in path {
        template = match (step, &template.kind) {
            (PathStep::Key(key), _) => template.entry(key).map(|(_, node)| node),
            (PathStep::Index(at), NodeKind::List(items)) => items.get(*at),
            _ => None,
        }
        .ok_or_else(|| refused(template, "the template is merged from another place"))?;
        refuse_shared(template)?;
    }
    let text = Text(text);
    let Some((key, metadata)) = template.entry(holder) else {
        return Ok(vec![text.entry(template, &[holder, ANNOTATIONS], annotations)?]);
    };
    refuse_shared(metadata)?;
    if metadata.is_null() || is_empty(metadata) {
        return text.filled(template, key, metadata, &[ANNOTATIONS], annotations);
    }
    let Some((key, own)) = metadata.entry(ANNOTATIONS) else {
        return Ok(vec![text.entry(metadata, &[ANNOTATIONS], annotations)?]);
    };
    refuse_shared(own)?;
    if own.is_null() || is_empty(own) {
        return text.filled(metadata, key, own, &[], annotations);
    }
    let mut edits = Vec::new();
    let mut missing = Vec::new();
    for (name, value) in annotations {
        match own.entry(name) {
            Some((key, node)) => {
                refuse_shared(node)?;
                edits.extend(text.replaced(key, node, value)?);
            }
            None => missing.push((*name, value.clone())),
        }
    }
    if !missing.is_empty() {
        edits.push(text.entry(own, &[], &missing)?);
    }
    Ok(edits)
}

/// The text with all changes.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.at.start, edit.at.end));
    let mut changed = String::with_capacity(text.len() + 1024);
    let mut end = 0;
    for edit in edits {
        // Changes that overlap lead to a text that is refused.
        changed += text.get(end..edit.at.start).unwrap_or_default();
        changed += &edit.text;
        end = end.max(edit.at.end);
    }
    changed + &text[end..]
}

fn refused(node: &Node, reason: &'static str) -> ManifestError {
    ManifestError::Place { line: node.line, reason }
}

fn refuse_shared(node: &Node) -> Result<(), ManifestError> {
    match node.is_shared {
        true => Err(refused(
            node,
            "what would be changed is used in other places, too (anchor or alias)",
        )),
        false => Ok(()),
    }
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Map { entries, merged, .. } if entries.is_empty() && merged.is_empty())
}

/// The text of a manifest.
struct Text<'a>(&'a str);

impl Text<'_> {
    /// The change that adds to a map with entries the annotations, within maps of these names. They come
    /// first, so that no comment changes its place.
    fn entry(
        &self,
        map: &Node,
        names: &[&str],
        annotations: &[(&str, String)],
    ) -> Result<Edit, ManifestError> {
        let NodeKind::Map { style, entries, merged } = &map.kind else {
            return Err(refused(map, "what should hold the annotations is not a map"));
        };
        if *style == MapStyle::Flow {
            let more = if entries.is_empty() && merged.is_empty() { "" } else { ", " };
            let at = map.span.start + 1;
            return Ok(Edit { at: at..at, text: flow(names, annotations) + more });
        }
        let Some((first, _)) = entries.first().filter(|_| self.begins_line(map.span.start)) else {
            // A map that begins behind `-`: its first line is not free.
            return self.behind_dash(map, names, annotations);
        };
        // Above the comments of the first entry.
        let at = self.first_line_of(map.span.start);
        Ok(Edit { at: at..at, text: self.block(first.column, names, annotations) })
    }

    /// The same for a block map that begins in the middle of a line: before its second entry.
    fn behind_dash(
        &self,
        map: &Node,
        names: &[&str],
        annotations: &[(&str, String)],
    ) -> Result<Edit, ManifestError> {
        let NodeKind::Map { entries, .. } = &map.kind else {
            return Err(refused(map, "what should hold the annotations is not a map"));
        };
        let second = entries.get(1).map(|(key, _)| key);
        let Some(key) = second.filter(|key| self.begins_line(key.span.start)) else {
            return Err(refused(map, "there is no line before which the annotations can stand"));
        };
        let at = self.line_start(key.span.start);
        Ok(Edit { at: at..at, text: self.block(key.column, names, annotations) })
    }

    /// The changes that fill the empty value of a key of `map`.
    fn filled(
        &self,
        map: &Node,
        key: &Key,
        value: &Node,
        names: &[&str],
        annotations: &[(&str, String)],
    ) -> Result<Vec<Edit>, ManifestError> {
        let is_flow = matches!(&map.kind, NodeKind::Map { style: MapStyle::Flow, .. });
        let written = if value.span.start >= key.span.end {
            value.span.clone()
        } else {
            key.span.end..key.span.end
        };
        if is_flow {
            let text = format!("{{{}}}", flow(names, annotations));
            let text = if written.is_empty() { format!(" {text}") } else { text };
            return Ok(vec![Edit { at: written, text }]);
        }
        let line_end = self.line_end(key.span.end);
        if written.end > line_end {
            return Err(refused(value, "the empty value is not on the line of its key"));
        }
        // The value goes, its comment stays.
        let mut edits = Vec::new();
        if !self.0[written.clone()].trim().is_empty() {
            edits.push(Edit { at: written, text: String::new() });
        }
        let mut text = self.block(key.column + INDENT, names, annotations);
        let at = self.after(line_end);
        if !self.0[..at].ends_with('\n') {
            text.insert_str(0, self.line_feed());
        }
        edits.push(Edit { at: at..at, text });
        Ok(edits)
    }

    /// The changes that replace the value of an annotation.
    fn replaced(&self, key: &Key, node: &Node, value: &str) -> Result<Vec<Edit>, ManifestError> {
        let NodeKind::Scalar(old) = &node.kind else {
            return Err(refused(node, "the value of an annotation is not text"));
        };
        if old.as_str() == Some(value) {
            return Ok(Vec::new());
        }
        // Text over several lines reaches to the next node.
        let written = self.0[node.span.clone()].trim_end();
        let end = node.span.start + written.len();
        // The indicator of a block of text, `>` or `|`, is on the line of its key.
        let is_apart = node.span.start > self.line_end(key.span.end);
        Ok(vec![match is_apart || self.0[..node.span.start].ends_with(':') {
            true => Edit { at: key.span.end..end, text: format!(": \"{value}\"") },
            false => Edit { at: node.span.start..end, text: format!("\"{value}\"") },
        }])
    }

    /// Lines with annotations in maps of these names.
    fn block(&self, column: usize, names: &[&str], annotations: &[(&str, String)]) -> String {
        let mut text = String::new();
        let mut indent = column;
        for name in names {
            text += &format!("{:indent$}{name}:{}", "", self.line_feed());
            indent += INDENT;
        }
        for (key, value) in annotations {
            text += &format!("{:indent$}{key}: \"{value}\"{}", "", self.line_feed());
        }
        text
    }

    fn line_feed(&self) -> &'static str {
        if self.0.contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn line_start(&self, at: usize) -> usize {
        self.0[..at].rfind('\n').map_or(0, |feed| feed + 1)
    }

    /// The start of the line, or of the comments and empty lines right above it.
    fn first_line_of(&self, at: usize) -> usize {
        let mut start = self.line_start(at);
        while start > 0 {
            let above = self.line_start(start - 1);
            let line = self.0[above..start].trim();
            if !line.is_empty() && !line.starts_with('#') {
                break;
            }
            start = above;
        }
        start
    }

    fn begins_line(&self, at: usize) -> bool {
        self.0[self.line_start(at)..at].bytes().all(|byte| byte == b' ')
    }

    fn line_end(&self, at: usize) -> usize {
        self.0[at..].find('\n').map_or(self.0.len(), |feed| at + feed)
    }

    /// The start of the line after one that ends there.
    fn after(&self, line_end: usize) -> usize {
        (line_end + 1).min(self.0.len())
    }
}

/// Entries of a map in braces, in maps of these names.
fn flow(names: &[&str], annotations: &[(&str, String)]) -> String {
    let entries = annotations.iter().map(|(key, value)| format!("\"{key}\": \"{value}\""));
    let entries = entries.collect::<Vec<_>>().join(", ");
    names.iter().rev().fold(entries, |inner, name| format!("\"{name}\": {{{inner}}}"))
}
