//! The names that one file declares, imports and uses.

use super::tokens::{Token, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// A path as written, like `super::draft::Item`.
pub(super) type Path<'s> = Vec<&'s str>;

/// One file, without its tests.
#[derive(Debug, Default)]
pub(super) struct Source<'s> {
    /// Modules in files of their own.
    pub(super) modules: BTreeSet<&'s str>,
    /// Items, wherever in the file they stand.
    pub(super) items: BTreeSet<&'s str>,
    /// Imported names and the paths that they stand for, each in the module of the file that imports it.
    pub(super) imports: BTreeMap<&'s str, Place<'s>>,
    /// Modules of which everything is imported.
    pub(super) globs: Vec<Place<'s>>,
    /// Every path that is imported or written out.
    pub(super) paths: Vec<Place<'s>>,
}

/// A path, and the modules within the file around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place<'s> {
    pub(super) inside: Vec<&'s str>,
    pub(super) path: Path<'s>,
}

/// Words before the name of an item.
const ITEMS: [&str; 9] =
    ["struct", "enum", "union", "trait", "type", "const", "static", "fn", "macro_rules"];

/// Words with which a declaration or statement begins, as opposed to a field or a variant.
const STARTS: [&str; 14] = [
    "struct", "enum", "trait", "type", "const", "static", "fn", "use", "mod", "impl", "extern",
    "unsafe", "async", "let",
];

impl<'s> Source<'s> {
    /// Reads a file that compiles.
    pub(super) fn read(text: &'s str) -> Self {
        let mut reader = Reader { tokens: tokens(text), at: 0, inside: Vec::new(), depth: 0 };
        let mut source = Self::default();
        while let Some(token) = reader.next() {
            reader.read(token, &mut source);
        }
        source
    }
}

struct Reader<'s> {
    tokens: Vec<Token<'s>>,
    at: usize,
    /// Modules within the file, each with the depth of its braces.
    inside: Vec<(&'s str, usize)>,
    depth: usize,
}

impl<'s> Reader<'s> {
    fn next(&mut self) -> Option<Token<'s>> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token
    }

    fn peek(&self) -> Option<Token<'s>> {
        self.tokens.get(self.at).copied()
    }

    fn word(&mut self) -> Option<&'s str> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Some(word)
            }
            _ => None,
        }
    }

    fn sign(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn place(&self, path: Path<'s>) -> Place<'s> {
        Place { inside: self.inside.iter().map(|&(name, _)| name).collect(), path }
    }

    fn read(&mut self, token: Token<'s>, source: &mut Source<'s>) {
        match token {
            Token::Sign('{') => self.depth += 1,
            Token::Sign('}') => {
                self.depth = self.depth.saturating_sub(1);
                self.inside.pop_if(|&mut (_, depth)| depth > self.depth);
            }
            Token::Sign('#') => self.attribute(),
            // `pub(in crate::a)` uses nothing.
            Token::Word("pub") if self.peek() == Some(Token::Sign('(')) => self.skip_group(),
            Token::Word("mod") => self.module(source),
            Token::Word("use") if self.peek() != Some(Token::Sign('<')) => {
                self.import(&[], source);
            }
            Token::Word(word) => {
                if ITEMS.contains(&word) {
                    self.sign('!');
                    source.items.extend(self.word());
                } else {
                    self.path(word, source);
                }
            }
            Token::Separator => {
                // The rest of a path whose beginning is no name: `<T as A>::b::c`.
                while self.word().is_some() && self.peek() == Some(Token::Separator) {
                    self.at += 1;
                }
            }
            Token::Sign(_) => {}
        }
    }

    /// An attribute; of one that is for tests, what it stands before as well.
    fn attribute(&mut self) {
        self.sign('!');
        let start = self.at;
        self.skip_group();
        let words: Vec<&str> = self.tokens[start..self.at.min(self.tokens.len())]
            .iter()
            .filter_map(|token| if let Token::Word(word) = token { Some(*word) } else { None })
            .collect();
        let is_for_tests = words == ["test"]
            || (words.first() == Some(&"cfg")
                && words.contains(&"test")
                && !words.contains(&"not"));
        if is_for_tests {
            self.skip_item();
        }
    }

    /// From an opening bracket to behind the closing one.
    fn skip_group(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.next() {
            match token {
                Token::Sign('(' | '[' | '{') => depth += 1,
                Token::Sign(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            if depth <= 0 {
                return;
            }
        }
    }

    /// To behind the item, field, variant or statement that begins here.
    fn skip_item(&mut self) {
        while self.sign('#') {
            self.skip_group();
        }
        if self.peek() == Some(Token::Word("pub")) {
            self.at += 1;
            if self.peek() == Some(Token::Sign('(')) {
                self.skip_group();
            }
        }
        let is_item = matches!(self.peek(), Some(Token::Word(word)) if STARTS.contains(&word));
        while let Some(token) = self.peek() {
            match token {
                Token::Sign('{') => {
                    self.skip_group();
                    return;
                }
                Token::Sign('(' | '[') => self.skip_group(),
                Token::Sign(';') => {
                    self.at += 1;
                    return;
                }
                Token::Sign(',') if !is_item => return,
                Token::Sign('}') => return,
                _ => self.at += 1,
            }
        }
    }

    fn module(&mut self, source: &mut Source<'s>) {
        let Some(name) = self.word() else { return };
        if self.sign('{') {
            self.depth += 1;
            self.inside.push((name, self.depth));
        } else if self.inside.is_empty() {
            source.modules.insert(name);
        }
    }

    /// One branch of an import, behind `before`.
    fn import(&mut self, before: &[&'s str], source: &mut Source<'s>) {
        let mut path = before.to_vec();
        loop {
            if self.sign('{') {
                while !self.sign('}') && self.peek().is_some() {
                    self.import(&path, source);
                    self.sign(',');
                }
                return;
            }
            if self.sign('*') {
                source.paths.push(self.place(path.clone()));
                source.globs.push(self.place(path));
                return;
            }
            match self.next() {
                Some(Token::Word(word)) => path.push(word),
                Some(Token::Separator) => continue,
                _ => return,
            }
            if self.peek() != Some(Token::Separator) {
                break;
            }
        }
        if path.len() > 1 && path.last() == Some(&"self") {
            path.pop();
        }
        let mut name = path.last().copied();
        if self.peek() == Some(Token::Word("as")) {
            self.at += 1;
            name = self.word();
        }
        source.paths.push(self.place(path.clone()));
        if let Some(name) = name {
            source.imports.insert(name, self.place(path));
        }
    }

    fn path(&mut self, first: &'s str, source: &mut Source<'s>) {
        let mut path = vec![first];
        while self.peek() == Some(Token::Separator) {
            self.at += 1;
            match self.word() {
                Some(word) => path.push(word),
                None => break,
            }
        }
        if path.len() > 1 {
            source.paths.push(self.place(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        Source::read(text).paths.iter().map(|place| place.path.join("::")).collect()
    }

    #[test]
    fn imports_are_read_branch_by_branch() {
        let source = Source::read("pub(in crate::x) use super::{a::B, c::{self, D as E}, f::*};");
        let paths: Vec<String> = source.paths.iter().map(|p| p.path.join("::")).collect();
        assert_eq!(paths, ["super::a::B", "super::c", "super::c::D", "super::f"]);
        assert_eq!(source.imports.keys().copied().collect::<Vec<_>>(), ["B", "E", "c"]);
        assert_eq!(source.globs.len(), 1);
    }

    #[test]
    fn paths_are_found_in_code() {
        let text =
            "fn f(a: &super::A<crate::b::C>) -> u8 { x.y(); d::e::<u8>(); <T as g::H>::i() }";
        assert_eq!(paths(text), ["super::A", "crate::b::C", "d::e", "g::H"]);
    }

    #[test]
    fn tests_are_left_out() {
        let text = "mod a; #[cfg(test)] mod b; #[cfg(test)] #[expect(x)] mod tests { use super::z; }\n\
                    #[cfg(test)] use crate::c; struct D { #[cfg(test)] e: crate::f::G, h: crate::i::J }\n\
                    #[test] fn k() { crate::l::m() } #[cfg(not(test))] use crate::n;";
        let source = Source::read(text);
        assert_eq!(source.modules.iter().copied().collect::<Vec<_>>(), ["a"]);
        assert_eq!(paths(text), ["crate::i::J", "crate::n"]);
    }

    #[test]
    fn modules_within_the_file_are_remembered() {
        let source = Source::read("mod a { fn f() { super::b::c(); } } fn g() { d::h() }");
        assert_eq!(source.paths[0].inside, ["a"]);
        assert_eq!(source.paths[1].inside, [""; 0]);
        assert!(source.items.contains("g") && source.modules.is_empty());
    }
}
