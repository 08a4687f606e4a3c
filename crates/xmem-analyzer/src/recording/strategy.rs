//! The strategies by which a job is distributed (DDP, FSDP, tensor parallelism, pipelines), by the notes of
//! `xmem profile`.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use xmem_types::printable;

/// A strategy with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// Its name (`DDP`, `FSDP2`).
    pub name: String,
    /// The options that are not PyTorch's default, by name, each with its value in Python.
    pub options: Vec<(String, String)>,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.options.iter().try_for_each(|(option, value)| write!(f, ", {option}={value}"))
    }
}

#[derive(Deserialize)]
pub(super) struct StrategyDto {
    name: String,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

impl StrategyDto {
    pub(super) fn read(self) -> Strategy {
        let text = |text: String| printable(&text).into_owned();
        let options = self.options.into_iter();
        Strategy {
            name: text(self.name),
            options: options.map(|(option, value)| (text(option), text(value))).collect(),
        }
    }
}
