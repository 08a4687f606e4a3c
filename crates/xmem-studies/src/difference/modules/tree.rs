//! The modules of a run as a tree, each with fingerprints of its structure and its bytes.

use super::super::align::Fingerprint;
use super::super::fnv::Fnv;
use super::super::group_row::GroupFigures;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The levels of modules that are told apart.
const DEEPEST: usize = 256;

/// A module.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its name with the counter.
    pub(super) name: String,
    /// Length of the class in the name.
    class: usize,
    counter: Option<u64>,
    path: String,
    children: Vec<usize>,
    figures: GroupFigures,
    /// Of what is in it.
    inner: Numbers,
    /// With its own class.
    outer: Numbers,
}

/// Numbers that are equal for equal modules.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    /// Of the tree, whatever the classes.
    shape: u64,
    /// Of the tree with its classes, and of these with bytes.
    print: Fingerprint,
}

impl Node {
    fn new(name: &str, path: String) -> Self {
        let counted = name.rsplit_once('_').and_then(|(class, counter)| {
            let counter = counter.parse().ok()?;
            Some((class.len(), Some(counter)))
        });
        let (class, counter) = counted.unwrap_or((name.len(), None));
        Self {
            name: name.to_owned(),
            class,
            counter,
            path,
            children: Vec::new(),
            figures: GroupFigures::NONE,
            inner: Numbers::default(),
            outer: Numbers::default(),
        }
    }

    fn class(&self) -> &str {
        &self.name[..self.class]
    }

    /// The fingerprint of structure and bytes without the class; none if there is nothing to know it by.
    pub(super) fn content(&self) -> Option<u64> {
        let has_bytes = self.inner.print.size > 0;
        (has_bytes || !self.children.is_empty()).then_some(self.inner.print.exact)
    }

    /// The fingerprint of the structure without the class; none if there is nothing in it.
    pub(super) fn structure(&self) -> Option<u64> {
        (!self.children.is_empty()).then_some(self.inner.print.structure)
    }

    /// The fingerprint of the tree below it, whatever the classes; none if there is nothing in it.
    pub(super) fn shape(&self) -> Option<u64> {
        (!self.children.is_empty()).then_some(self.inner.shape)
    }
}

/// Modules by number; 0 is the root, and each is after the one that it is in.
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    by_path: FxHashMap<String, usize>,
}

impl Tree {
    /// The tree of modules that are given by their paths.
    pub(super) fn new(modules: &[(&str, GroupFigures)]) -> Self {
        let mut nodes = vec![Node::new("", String::new())];
        let mut by_path: FxHashMap<String, usize> = FxHashMap::default();
        for &(module, figures) in modules {
            let mut at = 0;
            let mut end = 0;
            for part in module.splitn(DEEPEST, " > ") {
                end += part.len();
                let path = &module[..end];
                end += " > ".len();
                at = match by_path.get(path) {
                    Some(&known) => known,
                    None => {
                        let next = nodes.len();
                        nodes.push(Node::new(part, path.to_owned()));
                        nodes[at].children.push(next);
                        by_path.insert(path.to_owned(), next);
                        next
                    }
                };
            }
            nodes[at].figures = figures;
        }
        let mut tree = Self { nodes, by_path };
        tree.take_fingerprints();
        tree
    }

    fn take_fingerprints(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let mut children = std::mem::take(&mut self.nodes[at].children);
            // The order of classes is that of first calls, of which the recording may lack some.
            children.sort_by_key(|&child| {
                let node = &self.nodes[child];
                (node.class().to_owned(), node.counter, child)
            });
            let (mut structure, mut bytes) = (Fnv::default(), Fnv::default());
            let figures = self.nodes[at].figures;
            bytes.number(figures.bytes.get());
            bytes.number(figures.blocks.unwrap_or_default());
            for &child in &children {
                structure.number(self.nodes[child].outer.print.structure);
                bytes.number(self.nodes[child].outer.print.exact);
            }
            let mut shapes: Vec<u64> =
                children.iter().map(|&child| self.nodes[child].outer.shape).collect();
            shapes.sort_unstable();
            let mut tree = Fnv::default();
            shapes.into_iter().for_each(|shape| tree.number(shape));
            let shape = tree.0;
            let size = children.iter().map(|&child| self.nodes[child].outer.print.size);
            let size = size.fold(figures.bytes.get(), u64::saturating_add);
            let print = Fingerprint { structure: structure.0, exact: bytes.0, size };
            let inner = Numbers { shape, print };
            structure.text(self.nodes[at].class());
            bytes.text(self.nodes[at].class());
            let print = Fingerprint { structure: structure.0, exact: bytes.0, size };
            let outer = Numbers { shape, print };
            let node = &mut self.nodes[at];
            (node.children, node.inner, node.outer) = (children, inner, outer);
        }
    }

    /// The module with this path.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// The path of a module.
    pub(super) fn path(&self, node: usize) -> &str {
        &self.nodes[node].path
    }

    /// The modules in another, by class and in the order of their counters.
    pub(super) fn classes(&self, node: usize) -> BTreeMap<&str, Vec<usize>> {
        let mut classes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &child in &self.nodes[node].children {
            classes.entry(self.nodes[child].class()).or_default().push(child);
        }
        classes
    }

    /// The fingerprints of modules.
    pub(super) fn nodes_of(&self, nodes: &[usize]) -> Vec<Fingerprint> {
        nodes.iter().map(|&node| self.nodes[node].outer.print).collect()
    }
}
