//! Names of Python calls at the lines that they have reached.

use rustc_hash::FxHashMap;
use xmem_types::{Interner, Sym};

/// Names of calls (`train.py(12): forward`) at other lines than that of the `def`.
#[derive(Default)]
pub(crate) struct LineNames {
    known: FxHashMap<(Sym, u32), Sym>,
}

impl LineNames {
    /// The call `name` at a line.
    pub(crate) fn at(&mut self, name: Sym, line: u32, strings: &mut Interner) -> Sym {
        if let Some(&known) = self.known.get(&(name, line)) {
            return known;
        }
        let text = with_line(strings.resolve(name), line);
        let sym = text.map_or(name, |text| strings.intern(&text));
        self.known.insert((name, line), sym);
        sym
    }
}

fn with_line(name: &str, line: u32) -> Option<String> {
    let (place, function) = name.split_once("): ")?;
    let (file, _) = place.rsplit_once('(')?;
    Some(format!("{file}({line}): {function}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_a_call_changes() {
        for (name, expected) in [
            ("train.py(12): forward", Some("train.py(7): forward")),
            ("a (1)/b.py(3): <lambda>", Some("a (1)/b.py(7): <lambda>")),
            ("x.py(4): f(): g", Some("x.py(7): f(): g")),
            ("<built-in method relu>", None),
        ] {
            assert_eq!(with_line(name, 7).as_deref(), expected, "{name}");
        }
    }
}
