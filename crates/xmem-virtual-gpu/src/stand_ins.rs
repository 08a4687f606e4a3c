//! The libraries that stand in for CUDA's, each as a file.

use crate::environment::{Requirements, read};
use crate::family::Family;
use crate::native;
use std::collections::BTreeSet;
use xmem_elf::{Definition, Export, ExportKind, Machine, StandIn, Symbol, WriteError};

/// The driver's library, which torch and others open by this name.
pub(crate) const DRIVER: &str = "libcuda.so.1";
/// NVML's library.
const MANAGEMENT: &str = "libnvidia-ml.so.1";

/// Functions of the driver and of NVML that programs may look for; those that are not implemented report that
/// they were called.
const LOOKED_FOR: [&str; 2] = [
    include_str!("../data/driver-functions.txt"),
    include_str!("../data/management-functions.txt"),
];

/// A stand-in as it is written.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// The stand-ins that an environment needs, and the names of libraries whose functions had to be guessed from
/// what torch needs, because their files were not found.
///
/// # Errors
/// If a stand-in cannot be written, which names of damaged libraries may lead to.
pub(crate) fn all(
    requirements: &Requirements,
) -> Result<(Vec<Library>, Vec<String>), (String, WriteError)> {
    let mut names: BTreeSet<&str> = requirements.names.iter().map(String::as_str).collect();
    names.extend([DRIVER, MANAGEMENT]);
    let (mut libraries, mut guessed) = (Vec::new(), Vec::new());
    for name in names {
        let Some(family) = Family::of(name) else { continue };
        let file = requirements.files.get(name).and_then(|path| read(path));
        let is_ours = matches!(family, Family::Driver | Family::Management);
        // Without the library itself cuDNN has nobody to ask; torch reports what it misses.
        let symbols = match file {
            Some(library) if !is_ours => from_exports(family, library.exports),
            _ => {
                if !is_ours {
                    guessed.push(name.to_owned());
                }
                from_needs(family, requirements)
            }
        };
        let stand_in = StandIn {
            machine: Machine::X86_64,
            name: name.to_owned(),
            needed: vec![native::NAME.to_owned()],
            search: Some("$ORIGIN".to_owned()),
            symbols,
        };
        let content = stand_in.to_bytes().map_err(|error| (name.to_owned(), error))?;
        libraries.push(Library { name: name.to_owned(), content });
    }
    Ok((libraries, guessed))
}

/// The symbols of a library that was found.
fn from_exports(family: Family, exports: Vec<Export>) -> Vec<Symbol> {
    let mut seen = BTreeSet::new();
    exports
        .into_iter()
        .filter(|export| family.owns(&export.name))
        .filter(|export| seen.insert((export.name.clone(), export.version.clone())))
        .filter_map(|Export { name, version, kind }| {
            let definition = match kind {
                ExportKind::Function => family.define(&name),
                ExportKind::Data { size } => Definition::Data { size: size.max(1) },
                ExportKind::Other => return None,
            };
            Some(Symbol { name, version, definition })
        })
        .collect()
}

/// The symbols of a library that is not there: what is implemented, and what torch needs.
fn from_needs(family: Family, requirements: &Requirements) -> Vec<Symbol> {
    let lines = LOOKED_FOR.iter().flat_map(|text| text.lines());
    let looked_for = lines.filter(|line| !line.starts_with('#'));
    let names: BTreeSet<&str> = native::functions()
        .iter()
        .chain(&requirements.functions)
        .map(String::as_str)
        .chain(looked_for)
        .filter(|name| family.owns(name))
        .collect();
    let symbol = |name: &str| Symbol {
        name: name.to_owned(),
        version: None,
        definition: family.define(name),
    };
    names.into_iter().map(symbol).collect()
}
