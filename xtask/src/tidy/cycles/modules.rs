//! The modules of a crate, and which file a path leads to.

use super::source::{Place, Source};
use std::collections::BTreeMap;

/// How many imports are followed from one name to its definition.
const MAX_IMPORTS: usize = 16;
/// The files with which a crate begins; a program beside a library is left out.
const ROOTS: [&str; 2] = ["lib", "main"];

/// The path of a module from the root of its crate, which is empty.
pub(super) type Module = Vec<String>;

/// A use of one file by another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) from: Module,
    pub(super) to: Module,
    /// The path as written.
    pub(super) path: String,
}

/// The modules of a crate that have files of their own and are compiled without its tests.
#[derive(Debug)]
pub(super) struct Modules<'s> {
    files: BTreeMap<Module, Source<'s>>,
}

impl<'s> Modules<'s> {
    /// Takes the files of a crate by their paths below `src`.
    pub(super) fn of(files: &[(&str, &'s str)]) -> Self {
        let mut read: BTreeMap<Module, Source<'s>> = BTreeMap::new();
        let has_library = files.iter().any(|&(path, _)| path == "lib.rs");
        for &(path, text) in files {
            if path == "main.rs" && has_library {
                continue;
            }
            if let Some(module) = module(path) {
                read.insert(module, Source::read(text));
            }
        }
        let mut kept = BTreeMap::new();
        let mut open = vec![Module::new()];
        while let Some(module) = open.pop() {
            let Some(source) = read.remove(&module) else { continue };
            open.extend(source.modules.iter().map(|child| join(&module, child)));
            kept.insert(module, source);
        }
        Self { files: kept }
    }

    /// Every use of one file by another, once for each pair.
    pub(super) fn uses(&self) -> Vec<Use> {
        let mut found = BTreeMap::new();
        for (from, source) in &self.files {
            for place in &source.paths {
                let Some(to) = self.target(from, place, MAX_IMPORTS) else { continue };
                let to = self.file_of(&to);
                if to != *from {
                    found.entry((from.clone(), to)).or_insert_with(|| place.path.join("::"));
                }
            }
        }
        found.into_iter().map(|((from, to), path)| Use { from, to, path }).collect()
    }

    /// The file in which a module stands: its own or that of the modules around it.
    fn file_of(&self, module: &Module) -> Module {
        let mut module = module.clone();
        while !self.files.contains_key(&module) && module.pop().is_some() {}
        module
    }

    /// The module that holds what a path names; none if that is in another crate.
    fn target(&self, file: &Module, place: &Place<'_>, left: usize) -> Option<Module> {
        let mut here = file.clone();
        here.extend(place.inside.iter().map(|name| (*name).to_owned()));
        let (&first, mut rest) = place.path.split_first()?;
        let mut module = match first {
            "crate" => Module::new(),
            "self" => here,
            "super" => {
                here.pop()?;
                while let Some((&"super", after)) = rest.split_first() {
                    here.pop()?;
                    rest = after;
                }
                here
            }
            name if self.files.contains_key(&join(&here, name)) => join(&here, name),
            name => {
                let import = self.files.get(file)?.imports.get(name)?;
                // A name may be that of a crate as well: `use toml::Value` in a module `toml`.
                if left == 0 || import.path == place.path {
                    return None;
                }
                self.target(file, import, left - 1)?
            }
        };
        for name in rest {
            let child = join(&module, name);
            if self.files.contains_key(&child) {
                module = child;
            } else {
                return Some(self.holder(&module, name, left).unwrap_or(module));
            }
        }
        Some(module)
    }

    /// The module from which a module imports a name; none if it defines the name.
    fn holder(&self, module: &Module, name: &str, left: usize) -> Option<Module> {
        let left = left.checked_sub(1)?;
        let file = self.file_of(module);
        let source = self.files.get(&file)?;
        if let Some(import) = source.imports.get(name) {
            return self.target(&file, import, left);
        }
        if source.items.contains(name) {
            return None;
        }
        let mut globs = source.globs.iter().filter_map(|glob| self.target(&file, glob, left));
        globs.find_map(|glob| {
            let is_defined = self.files.get(&glob)?.items.contains(name);
            if is_defined { Some(glob) } else { self.holder(&glob, name, left) }
        })
    }
}

fn join(module: &Module, name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The module of a file.
fn module(path: &str) -> Option<Module> {
    let path = path.strip_suffix(".rs")?;
    let mut module: Module = path.split('/').map(str::to_owned).collect();
    if ROOTS.contains(&path) || module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let uses = Modules::of(files).uses();
        let spelled = |module: &Module| format!("/{}", module.join("/"));
        uses.iter().map(|u| format!("{} {}", spelled(&u.from), spelled(&u.to))).collect()
    }

    #[test]
    fn paths_lead_to_files() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; fn f() { super::b::c::g(); std::mem::take(); }"),
            ("b/mod.rs", "pub mod c; pub struct B;"),
            ("b/c.rs", "pub fn g() {} mod inner { use super::super::B; use super::g; }"),
        ];
        assert_eq!(uses(&files), ["/a /b", "/a /b/c", "/b/c /b"]);
    }

    #[test]
    fn imports_are_followed_to_the_definition() {
        let files = [
            ("lib.rs", "mod a; mod b; mod d; pub use b::C as Renamed;"),
            ("a.rs", "use crate::Renamed; use crate::d; fn f(x: d::D) {}"),
            ("b.rs", "mod c; pub use c::*; pub struct B;"),
            ("b/c.rs", "pub struct C;"),
            ("d.rs", "pub use self::e::D; mod e;"),
            ("d/e.rs", "pub struct D;"),
        ];
        let expected = ["/ /b/c", "/a /b/c", "/a /d", "/a /d/e", "/b /b/c", "/d /d/e"];
        assert_eq!(uses(&files), expected);
    }

    #[test]
    fn imports_in_a_circle_end() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use crate::b::X;"),
            ("b.rs", "pub use crate::a::X;"),
        ];
        assert_eq!(uses(&files).len(), 2);
    }

    #[test]
    fn tests_and_programs_beside_a_library_are_left_out() {
        let files = [
            ("lib.rs", "mod a; #[cfg(test)] mod tests;"),
            ("main.rs", "use crate::a;"),
            ("a.rs", "#[cfg(test)] mod tests { use crate::b; }"),
            ("tests.rs", "use crate::a;"),
        ];
        assert_eq!(uses(&files), [""; 0]);
    }
}
