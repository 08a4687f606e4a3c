//! The settings that files and variables may have.

use super::Layer;
use super::error::ConfigFailure;
use crate::terminal::shown;
use crate::values::share_or_size;
use std::path::Path;
use toml::Value;
use xmem::{Bytes, TorchVersion};
use xmem_gate::{Margin, Policy};

/// A setting.
pub(crate) struct Key {
    /// The name in files.
    pub(crate) name: &'static str,
    /// The variable.
    pub(super) variable: &'static str,
    /// Refuses text that is not a value.
    check: fn(&str) -> Result<(), String>,
    pub(crate) default: &'static str,
}

pub(crate) const KEYS: &[Key] = &[
    Key { name: "device", variable: "XMEM_DEVICE", check: device, default: "" },
    Key { name: "budget", variable: "XMEM_BUDGET", check: memory, default: "" },
    Key { name: "margin", variable: "XMEM_MARGIN", check: margin, default: "0%" },
    Key { name: "policy", variable: "XMEM_POLICY", check: parsed::<Policy>, default: "reject" },
    Key { name: "baseline", variable: "XMEM_BASELINE", check: any, default: "" },
    Key { name: "tolerance", variable: "XMEM_TOLERANCE", check: margin, default: "1%" },
    Key { name: "torch", variable: "XMEM_TORCH", check: parsed::<TorchVersion>, default: "" },
    Key { name: "alloc-conf", variable: "XMEM_ALLOC_CONF", check: any, default: "" },
    Key { name: "cudnn", variable: "XMEM_CUDNN", check: any, default: "auto" },
    Key { name: "cache", variable: "XMEM_CACHE", check: parsed::<bool>, default: "true" },
];

fn any(_: &str) -> Result<(), String> {
    Ok(())
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(drop).map_err(|error| error.to_string())
}

fn margin(text: &str) -> Result<(), String> {
    share_or_size::<Margin>(text).map(drop)
}

fn memory(text: &str) -> Result<(), String> {
    Bytes::of_device(text).map(drop).map_err(|error| error.to_string())
}

fn device(text: &str) -> Result<(), String> {
    xmem::find(text).map(drop).map_err(|error| error.to_string())
}

/// The settings of the environment. Empty variables do not count.
pub(super) fn variables() -> Result<Vec<Layer>, ConfigFailure> {
    let mut layers = Vec::new();
    for key in KEYS {
        let Some(value) = std::env::var_os(key.variable).filter(|value| !value.is_empty()) else {
            continue;
        };
        let origin = key.variable.to_owned();
        let value = value.into_string().map_err(|_| ConfigFailure::Value {
            place: origin.clone(),
            reason: "it is not UTF-8".to_owned(),
        })?;
        check(key, &value, &origin)?;
        layers.push(Layer { origin, folder: None, values: vec![(key.name, value)] });
    }
    Ok(layers)
}

fn check(key: &Key, value: &str, place: &str) -> Result<(), ConfigFailure> {
    (key.check)(value).map_err(|reason| ConfigFailure::Value {
        place: format!("{place}: `{}`", key.name),
        reason,
    })
}

/// The settings of a table in a file; `place` names it in messages.
pub(super) fn of_table(
    table: &toml::Table,
    file: &Path,
    place: &str,
) -> Result<Layer, ConfigFailure> {
    let place = format!("`{}`{place}", shown(file));
    let mut values = Vec::new();
    for (name, value) in table {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            return Err(ConfigFailure::Value { place, reason: unknown(name) });
        };
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Boolean(on) => on.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => {
                let reason = format!("`{name}` is neither a text nor a number");
                return Err(ConfigFailure::Value { place, reason });
            }
        };
        check(key, &value, &place)?;
        values.push((key.name, value));
    }
    let folder = file.parent().map(Path::to_path_buf);
    Ok(Layer { origin: place, folder, values })
}

/// The message about an unknown key, in Serde's words.
fn unknown(name: &str) -> String {
    let known: Vec<String> = KEYS.iter().map(|key| format!("`{}`", key.name)).collect();
    let name = xmem::types::printable(name);
    xmem_gate::with_suggestion(&format!(
        "unknown field `{name}`, expected one of {}",
        known.join(", ")
    ))
}
