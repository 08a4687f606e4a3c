//! Texts and paths, each kept once.

use rustc_hash::FxHashMap;

/// The number of a text in [`Timeline::texts`](super::Timeline::texts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextId(pub u32);

/// The number of a path in [`Timeline::paths`](super::Timeline::paths).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// The texts and the paths of a timeline.
#[derive(Clone, Debug)]
pub(super) struct Names {
    texts: Vec<String>,
    by_text: FxHashMap<String, TextId>,
    paths: Vec<Vec<TextId>>,
    by_path: FxHashMap<Vec<TextId>, PathId>,
}

impl Default for Names {
    /// The empty text and the empty path.
    fn default() -> Self {
        Self {
            texts: vec![String::new()],
            by_text: [(String::new(), TextId(0))].into_iter().collect(),
            paths: vec![Vec::new()],
            by_path: [(Vec::new(), PathId(0))].into_iter().collect(),
        }
    }
}

impl Names {
    pub(super) fn text_id(&mut self, text: &str) -> TextId {
        if let Some(&known) = self.by_text.get(text) {
            return known;
        }
        let id = TextId(self.texts.len() as u32);
        self.texts.push(text.to_owned());
        self.by_text.insert(text.to_owned(), id);
        id
    }

    pub(super) fn path_id(&mut self, path: Vec<TextId>) -> PathId {
        if let Some(&known) = self.by_path.get(&path) {
            return known;
        }
        let id = PathId(self.paths.len() as u32);
        self.paths.push(path.clone());
        self.by_path.insert(path, id);
        id
    }

    pub(super) fn text(&self, id: TextId) -> &str {
        &self.texts[id.0 as usize]
    }

    pub(super) fn path(&self, id: PathId) -> &[TextId] {
        &self.paths[id.0 as usize]
    }

    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    pub(super) fn paths(&self) -> &[Vec<TextId>] {
        &self.paths
    }
}
