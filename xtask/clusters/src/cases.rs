//! Tables of cases: `cases.toml` of a folder of tests, whose head describes the keys.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use xmem_task::{Error, repo};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table<C> {
    case: Vec<C>,
}

/// Reads all cases, in their order.
pub(crate) fn read<C: DeserializeOwned>(tests: &str) -> Result<Vec<C>, Error> {
    let path = Path::new(tests).join("cases.toml");
    let table: Table<C> =
        toml::from_str(&repo::text(&path)?).map_err(|source| Error::Data { path, source })?;
    Ok(table.case)
}
