//! Measures: changes to a job that lower its memory, which the hook makes while the script runs.
//!
//! Each is a file of `python/xmem_recorder/measures`, which says of itself, in constants of one line, what this module knows
//! of it: there is no second table.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use thiserror::Error;

/// The folder of the measures in the hook.
const FOLDER: &str = "xmem_recorder/measures/";

/// The files that measures share, each after those that it uses itself.
const SHARED: [&str; 3] = ["common.py", "blocks.py", "sharding.py"];

/// What a measure changes in the numbers that a job computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Changes {
    /// Nothing: losses are the same, bit for bit.
    Nothing,
    /// The order of additions, or the precision of intermediate results.
    Rounding,
    /// The training itself.
    Training,
}

impl Changes {
    /// All of them, from the least to the most.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Rounding, Self::Training];

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Rounding => "rounding",
            Self::Training => "training",
        }
    }
}

/// What a measure says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureInfo {
    /// The name, as on the command line.
    pub name: &'static str,
    /// What it does, in a few words; `{option}` stands for its option.
    pub title: &'static str,
    /// What it changes in the numbers that the job computes.
    pub changes: Changes,
    /// The package that it needs; none if PyTorch is enough.
    pub needs: Option<&'static str>,
    /// Other measures that it cannot be taken with; either of two may name the other.
    pub excludes: Vec<&'static str>,
    /// The option without which it is given; none if it has none.
    pub option: Option<&'static str>,
    /// Whether its option is the number of GPUs, each with a process of its own, that it needs.
    pub takes_gpus: bool,
    /// The code that a person would write.
    pub code: &'static str,
    /// Its file in the hook.
    pub source: &'static str,
}

/// All measures, in the order in which they are installed: that of `NAMES` in the package.
#[must_use]
pub fn measures() -> Vec<MeasureInfo> {
    let package = source("__init__.py");
    let names = package.lines().skip_while(|line| !line.starts_with("NAMES = ("));
    let names = names.skip(1).take_while(|line| *line != ")");
    let name = |line: &'static str| line.trim().strip_prefix('"')?.strip_suffix("\",");
    names.filter_map(name).filter_map(|name| info(source(&file_of(name)))).collect()
}

/// The file of a measure.
fn file_of(name: &str) -> String {
    format!("{}.py", name.replace('-', "_"))
}

/// The files that some measures share, each after those that it uses itself.
pub(crate) fn shared_sources(wanted: &[&Measure]) -> Vec<&'static str> {
    let mut users: Vec<&str> = wanted.iter().map(|measure| measure.info().source).collect();
    let mut shared = Vec::new();
    for file in SHARED.into_iter().rev() {
        let import = format!("\nfrom .{} import ", file.trim_end_matches(".py"));
        if users.iter().any(|user| user.contains(&import)) {
            users.push(source(file));
            shared.insert(0, source(file));
        }
    }
    shared
}

fn source(file: &str) -> &'static str {
    sources().find(|(name, _)| *name == file).map_or("", |(_, text)| text)
}

/// Names in the folder, with their contents.
fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    #[cfg(unix)]
    let files = crate::hook::HOOK;
    // Nothing is recorded there, with measures or without.
    #[cfg(not(unix))]
    let files: &[(&str, &str)] = &[];
    files.iter().filter_map(|(name, text)| Some((name.strip_prefix(FOLDER)?, *text)))
}

fn info(source: &'static str) -> Option<MeasureInfo> {
    let constant = |name: &str| {
        let line =
            source.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
        line.strip_suffix('"')
    };
    let given = |name: &str| constant(name).filter(|text| !text.is_empty());
    Some(MeasureInfo {
        name: constant("NAME")?,
        title: constant("TITLE")?,
        changes: Changes::ALL.into_iter().find(|c| Some(c.name()) == constant("CHANGES"))?,
        needs: given("NEEDS"),
        excludes: constant("EXCLUDES").unwrap_or_default().split_whitespace().collect(),
        option: given("OPTION"),
        takes_gpus: given("GPUS").is_some(),
        code: constant("CODE")?,
        source,
    })
}

/// A measure that is taken, with its option.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Measure {
    name: String,
    option: Option<String>,
}

/// A text that names no measure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseMeasureError {
    /// There is none of that name.
    #[error("`{0}` is not a measure")]
    Unknown(String),
    /// It has no option.
    #[error("`{0}` takes no value")]
    NoOption(String),
    /// Its option is not one.
    #[error("`{0}` takes a whole number from 1 on")]
    NotANumber(String),
}

impl Measure {
    /// The measure of that name with its usual option.
    #[must_use]
    pub fn of(info: &MeasureInfo) -> Self {
        Self { name: info.name.to_owned(), option: info.option.map(str::to_owned) }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says of itself.
    ///
    /// # Panics
    /// Never: it was made from it.
    #[must_use]
    pub fn info(&self) -> MeasureInfo {
        let found = measures().into_iter().find(|info| info.name == self.name);
        found.expect("a measure is made from what is known")
    }

    /// What it does, in a few words.
    #[must_use]
    pub fn title(&self) -> String {
        self.info().title.replace("{option}", self.option.as_deref().unwrap_or_default())
    }

    /// The code that a person would write.
    #[must_use]
    pub fn code(&self) -> String {
        self.info().code.replace("{option}", self.option.as_deref().unwrap_or_default())
    }

    /// The number of GPUs, each with a process of its own, that it needs; none if it needs no more than the job as it is.
    #[must_use]
    pub fn gpus(&self) -> Option<NonZeroU32> {
        self.option()?.parse().ok().filter(|_| self.info().takes_gpus)
    }

    /// The option; none if it has none.
    #[must_use]
    pub fn option(&self) -> Option<&str> {
        self.option.as_deref()
    }
}

impl fmt::Display for Measure {
    /// As on the command line: the name, and its option if it is not the usual one, or a number of GPUs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.option {
            Some(option) if self.info().option != Some(option) || self.info().takes_gpus => {
                write!(f, "{}={option}", self.name)
            }
            _ => f.write_str(&self.name),
        }
    }
}

impl FromStr for Measure {
    type Err = ParseMeasureError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, option) = match text.split_once('=') {
            Some((name, option)) => (name.trim(), Some(option.trim())),
            None => (text.trim(), None),
        };
        let known = measures().into_iter().find(|info| info.name == name);
        let info = known.ok_or_else(|| ParseMeasureError::Unknown(name.to_owned()))?;
        match (option, info.option) {
            (None, _) => Ok(Self::of(&info)),
            (Some(_), None) => Err(ParseMeasureError::NoOption(name.to_owned())),
            (Some(option), Some(_)) => match option.parse::<u32>() {
                Ok(1..) => Ok(Self { name: name.to_owned(), option: Some(option.to_owned()) }),
                _ => Err(ParseMeasureError::NotANumber(name.to_owned())),
            },
        }
    }
}

/// What became of a measure in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedMeasure {
    /// Its name.
    pub name: String,
    /// The places to which it was applied; none if it could not be applied.
    pub places: u64,
    /// The places in words, or the reason why there are none.
    pub text: String,
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_folder_says_what_it_is() {
        let files: BTreeSet<String> = sources().map(|(name, _)| name.to_owned()).collect();
        let known = measures();
        let others = ["__init__.py"].into_iter().chain(SHARED).map(str::to_owned);
        let expected = known.iter().map(|info| file_of(info.name)).chain(others);
        assert_eq!(files, expected.collect(), "NAMES, or a constant of a file");
        for info in &known {
            assert!(!info.title.contains("{option}") || info.option.is_some(), "{}", info.name);
        }
        let names: BTreeSet<&str> = known.iter().map(|info| info.name).collect();
        assert_eq!(names.len(), known.len());
        for info in &known {
            let unknown = info.excludes.iter().find(|other| !names.contains(*other));
            assert_eq!(unknown, None, "{}", info.name);
        }
    }

    #[test]
    fn the_page_lists_the_measures() {
        let row = |info: &MeasureInfo| {
            let option = info.option.map(|option| format!("={option}")).unwrap_or_default();
            let needs = info.needs.map(|needs| format!(" (needs {needs})")).unwrap_or_default();
            let title = info.title.replace("{option}", info.option.unwrap_or_default());
            let (name, changes) = (info.name, info.changes.name());
            format!("| `{name}{option}` | {title}{needs} | {changes} |\n")
        };
        let rows: String = measures().iter().map(row).collect();
        let table = format!("| measure | what it does | changes |\n|---|---|---|\n{rows}");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/fit.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let mark = "<!-- measures: written by the tests of xmem-recorder -->\n\n";
        let (before, rest) = page.split_once(mark).expect("the place of the table");
        let after = rest.trim_start_matches('\n').split_once("\n\n").expect("a paragraph");
        let after = if rest.starts_with('|') { after.1 } else { rest };
        expect_test::expect_file![path].assert_eq(&format!("{before}{mark}{table}\n{after}"));
    }

    #[test]
    fn a_measure_is_what_its_text_says() {
        for text in ["fused", "checkpointing=2", "early-zero-grad"] {
            assert_eq!(text.parse::<Measure>().expect(text).to_string(), text);
        }
        assert_eq!(
            "checkpointing=1".parse::<Measure>().expect("usual").to_string(),
            "checkpointing"
        );
        let fsdp: Measure = "fsdp".parse().expect("usual");
        assert_eq!((fsdp.to_string().as_str(), fsdp.gpus()), ("fsdp=2", NonZeroU32::new(2)));
        assert_eq!("checkpointing=2".parse::<Measure>().expect("known").gpus(), None);
        for text in ["", "fuse", "fused=1", "checkpointing=0", "checkpointing=", "checkpointing=x"]
        {
            text.parse::<Measure>().expect_err(text);
        }
    }
}
