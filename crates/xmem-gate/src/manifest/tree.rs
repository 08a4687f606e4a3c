//! YAML as a tree of nodes that know their places in the text.

use super::error::ManifestError;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// The deepest nesting, as in serde_json.
const MAX_DEPTH: usize = 128;

/// The most nodes of a manifest, aliases resolved.
const MAX_NODES: usize = 1 << 19;

/// A node with its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The bytes of the text that hold it, without anchor and tag.
    pub(super) span: Range<usize>,
    /// The line, from 1.
    pub(super) line: usize,
    /// The column, from 0, in characters.
    pub(super) column: usize,
    /// True if it has an anchor, or is an alias: other places say the same.
    pub(super) is_shared: bool,
    pub(super) kind: NodeKind,
}

/// The value of a node.
#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Scalar(Value),
    List(Vec<Node>),
    /// Keys with their values, those of merged maps not among them.
    Map {
        style: MapStyle,
        entries: Vec<(Key, Node)>,
        merged: Vec<Node>,
    },
}

/// The way in which a map is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapStyle {
    /// One entry a line.
    Block,
    /// In braces.
    Flow,
}

/// A key with its place.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) span: Range<usize>,
    pub(super) column: usize,
}

impl Node {
    /// The value, with merged maps.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar(value) => value.clone(),
            NodeKind::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            NodeKind::Map { entries, merged, .. } => {
                let mut map = serde_json::Map::new();
                for (key, node) in entries {
                    map.insert(key.name.clone(), node.value());
                }
                for node in merged {
                    if let Value::Object(more) = node.value() {
                        more.into_iter().for_each(|(key, value)| {
                            map.entry(key).or_insert(value);
                        });
                    }
                }
                Value::Object(map)
            }
        }
    }

    /// The entry of a key, if it is written in this map.
    pub(super) fn entry(&self, name: &str) -> Option<(&Key, &Self)> {
        let NodeKind::Map { entries, .. } = &self.kind else { return None };
        entries.iter().find(|(key, _)| key.name == name).map(|(key, node)| (key, node))
    }

    /// Returns whether there is nothing, or `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, NodeKind::Scalar(Value::Null))
    }

    fn size(&self) -> usize {
        1 + match &self.kind {
            NodeKind::Scalar(_) => 0,
            NodeKind::List(items) => items.iter().map(Self::size).sum(),
            NodeKind::Map { entries, merged, .. } => {
                let own = entries.iter().map(|(_, node)| 1 + node.size());
                own.chain(merged.iter().map(Self::size)).sum()
            }
        }
    }

    fn depth(&self) -> usize {
        1 + match &self.kind {
            NodeKind::Scalar(_) => 0,
            NodeKind::List(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            NodeKind::Map { entries, merged, .. } => {
                let own = entries.iter().map(|(_, node)| node.depth());
                own.chain(merged.iter().map(Self::depth)).max().unwrap_or(0)
            }
        }
    }
}

/// A list or map that is not complete.
struct Open {
    start: Range<usize>,
    line: usize,
    column: usize,
    anchor: usize,
    kind: NodeKind,
    /// The key whose value comes next.
    key: Option<Key>,
}

struct Builder<'a> {
    text: &'a str,
    /// The byte at which each character begins, and the length of the text.
    bytes: Vec<usize>,
    open: Vec<Open>,
    /// Nodes with an anchor, and the number of nodes in them.
    anchors: BTreeMap<usize, (Node, usize)>,
    nodes: usize,
    documents: Vec<Node>,
}

/// The documents of a text.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, ManifestError> {
    let bytes = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut builder = Builder {
        text,
        bytes,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        nodes: 0,
        documents: Vec::new(),
    };
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| failed(*error.marker(), error.info().to_owned()))?;
        builder.event(event, span)?;
    }
    Ok(builder.documents)
}

fn failed(at: Marker, reason: impl Into<String>) -> ManifestError {
    ManifestError::Syntax { line: at.line(), column: at.col() + 1, reason: reason.into() }
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), ManifestError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref());
                let node = self.node(span, anchor, NodeKind::Scalar(value));
                self.complete(node, anchor, span, 1)
            }
            Event::SequenceStart(anchor, _) => self.open(span, anchor, NodeKind::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let start = self.byte(span.start);
                let is_flow = self.text[start..].starts_with('{');
                let style = if is_flow { MapStyle::Flow } else { MapStyle::Block };
                let kind = NodeKind::Map { style, entries: Vec::new(), merged: Vec::new() };
                self.open(span, anchor, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                // The span of a bracket may hold the comment behind it.
                let last = self.byte(span.start);
                let end = match self.text[last..].starts_with(['}', ']']) {
                    true => last + 1,
                    false => self.byte(span.end).max(open.start.end),
                };
                let node = Node {
                    span: open.start.start..end,
                    line: open.line,
                    column: open.column,
                    is_shared: open.anchor != 0,
                    kind: open.kind,
                };
                self.complete(node, open.anchor, span, 0)
            }
            Event::Alias(anchor) => {
                let Some((known, size)) = self.anchors.get(&anchor) else {
                    return Err(failed(span.start, "an alias without its anchor"));
                };
                let size = *size;
                if self.nodes + size > MAX_NODES {
                    return Err(failed(span.start, "too large with its aliases"));
                }
                if self.open.len() + known.depth() > MAX_DEPTH {
                    return Err(failed(span.start, "nested too deeply"));
                }
                let mut node = known.clone();
                node.is_shared = true;
                node.span = self.byte(span.start)..self.byte(span.end);
                node.line = span.start.line();
                self.complete(node, 0, span, size)
            }
            _ => Ok(()),
        }
    }

    fn byte(&self, at: Marker) -> usize {
        self.bytes[at.index().min(self.bytes.len() - 1)]
    }

    fn node(&self, span: Span, anchor: usize, kind: NodeKind) -> Node {
        Node {
            span: self.byte(span.start)..self.byte(span.end),
            line: span.start.line(),
            column: span.start.col(),
            is_shared: anchor != 0,
            kind,
        }
    }

    fn open(&mut self, span: Span, anchor: usize, kind: NodeKind) -> Result<(), ManifestError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(failed(span.start, "nested too deeply"));
        }
        self.count(1, span)?;
        let start = self.byte(span.start)..self.byte(span.end);
        let (line, column) = (span.start.line(), span.start.col());
        self.open.push(Open { start, line, column, anchor, kind, key: None });
        Ok(())
    }

    fn count(&mut self, nodes: usize, span: Span) -> Result<(), ManifestError> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(failed(span.start, "too large"));
        }
        Ok(())
    }

    /// Puts a complete node where it belongs.
    fn complete(
        &mut self,
        node: Node,
        anchor: usize,
        span: Span,
        nodes: usize,
    ) -> Result<(), ManifestError> {
        self.count(nodes, span)?;
        if anchor != 0 {
            let size = node.size();
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        match (&mut open.kind, open.key.take()) {
            (NodeKind::Map { entries, merged, .. }, Some(key)) => {
                if key.name == "<<" {
                    match node.kind {
                        NodeKind::List(items) => merged.extend(items),
                        _ => merged.push(node),
                    }
                } else {
                    entries.push((key, node));
                }
            }
            (NodeKind::Map { entries, .. }, None) => {
                let NodeKind::Scalar(value) = node.kind else {
                    return Err(failed(span.start, "a key is not text"));
                };
                let name = match value {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                if entries.iter().any(|(known, _)| known.name == name) {
                    return Err(failed(span.start, format!("the key `{name}` is there twice")));
                }
                open.key = Some(Key { name, span: node.span, column: node.column });
            }
            (NodeKind::List(items), _) => items.push(node),
            (NodeKind::Scalar(_), _) => {}
        }
        Ok(())
    }
}

/// The value of a scalar.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = tag.is_some_and(|tag| tag.suffix == "str");
    if style != ScalarStyle::Plain || is_text {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let radix = [("0x", 16), ("0o", 8)]
        .into_iter()
        .find_map(|(prefix, radix)| u64::from_str_radix(text.strip_prefix(prefix)?, radix).ok());
    if let Some(number) = radix {
        return number.into();
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Value::String(text.to_owned());
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = plain.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = plain.parse::<u64>() {
        return number.into();
    }
    let number = plain.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}
