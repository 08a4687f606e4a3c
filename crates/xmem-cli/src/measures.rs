//! Changes to a job that lower its memory, as the command line names them: measures of the hook, and settings of PyTorch's
//! allocator.

use crate::values::Offered;
use clap::builder::{PossibleValue, TypedValueParser};
use xmem::simulator::{alloc_conf_variables, newest_release};
use xmem_recorder::{Measure, ParseMeasureError, measures};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// One that the hook makes.
    Measure(Measure),
    /// `expandable_segments:True`: segments grow, so that less is lost between blocks.
    ExpandableSegments,
}

/// The name of the setting of the allocator, as on the command line.
pub(crate) const EXPANDABLE: &str = "expandable-segments";

/// The variables with PyTorch's settings of the allocator. All releases read the first.
pub(crate) fn variables() -> &'static [&'static str] {
    alloc_conf_variables(newest_release())
}

/// The setting in them.
pub(crate) const SETTING: &str = "expandable_segments:True";

/// A list of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes(pub(crate) Vec<Change>);

/// The parser of a list of changes. A shell offers the measures.
pub(crate) fn list_of_changes() -> impl TypedValueParser<Value = Changes> {
    let offered = || {
        let known = measures().into_iter().map(|measure| PossibleValue::new(measure.name));
        known.chain([PossibleValue::new(EXPANDABLE)]).collect()
    };
    Offered::new(offered).try_map(|text| changes(&text))
}

/// Reads a list of changes, or `none`.
pub(crate) fn changes(text: &str) -> Result<Changes, String> {
    let one = |text: &str| {
        Change::parse(text).map_err(|error| {
            let known: Vec<&str> = measures().iter().map(|info| info.name).collect();
            format!("{error}; measures are {EXPANDABLE}, {}", known.join(", "))
        })
    };
    match text.trim() {
        "none" => Ok(Changes(Vec::new())),
        list => Ok(Changes(list.split(',').map(one).collect::<Result<_, _>>()?)),
    }
}

impl Changes {
    /// The measures among them.
    pub(crate) fn measures(&self) -> Vec<Measure> {
        self.0.iter().filter_map(Change::measure).cloned().collect()
    }

    /// The variables of the environment that the others are made by.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        self.0.iter().flat_map(Change::variables).collect()
    }
}

impl Change {
    /// The change of that name.
    pub(crate) fn parse(text: &str) -> Result<Self, ParseMeasureError> {
        match text.trim() {
            EXPANDABLE => Ok(Self::ExpandableSegments),
            other => other.parse().map(Self::Measure),
        }
    }

    /// The name, as on the command line.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Measure(measure) => measure.to_string(),
            Self::ExpandableSegments => EXPANDABLE.to_owned(),
        }
    }

    /// The measure, if it is one.
    pub(crate) const fn measure(&self) -> Option<&Measure> {
        match self {
            Self::Measure(measure) => Some(measure),
            Self::ExpandableSegments => None,
        }
    }

    /// The variables of the environment that make it; what they say already stays.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        if self.measure().is_some() {
            return Vec::new();
        }
        let present = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let with = |name: &str, value: Option<String>| {
            let value =
                value.map_or_else(|| SETTING.to_owned(), |value| format!("{value},{SETTING}"));
            (name.to_owned(), value)
        };
        let set: Vec<_> =
            variables().iter().filter_map(|name| Some(with(name, Some(present(name)?)))).collect();
        // The older name is known to all releases.
        if set.is_empty() { vec![with(variables()[0], None)] } else { set }
    }
}
