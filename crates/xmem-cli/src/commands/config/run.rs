//! Runs `xmem config`.

use super::args::{ConfigArgs, ConfigFormat};
use super::error::ConfigCommandFailure;
use super::lua;
use crate::commands::Outcome;
use crate::config::{Config, KEYS};
use crate::exit::Exit;
use crate::output;
use crate::terminal::{self, shown};
use std::fmt::Write as _;
use xmem_gate::kubernetes::admission_policy;

/// The JSON Schema of the site file.
const SCHEMA: &str = include_str!("../../../../../docs/schema/xmem.site.1.schema.json");

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs) -> Outcome {
    if args.format == ConfigFormat::Schema {
        output::write(SCHEMA.as_bytes(), None)?;
        return Ok(Exit::Fits);
    }
    let config = Config::load(&args.settings)?;
    let page = match (args.format, &config.site_file) {
        (ConfigFormat::Lua | ConfigFormat::AdmissionPolicy, None) => {
            return Err(ConfigCommandFailure::NoSite.into());
        }
        (ConfigFormat::Lua, Some(_)) => lua::site(&config.site),
        (ConfigFormat::AdmissionPolicy, Some(_)) => admission_policy(&config.site),
        _ => table(&config),
    };
    for (sentence, file) in config.site.ineffective().iter().zip(config.site_file.iter().cycle()) {
        terminal::say(&format!("warning: `{}`: {sentence}", shown(file)));
    }
    output::write(page.as_bytes(), None)?;
    Ok(Exit::Fits)
}

/// Each setting with its value and its origin.
fn table(config: &Config) -> String {
    let site = config.site_file.as_deref();
    let of_site = |key: &str| match key {
        "margin" => config.site.rules.margin.map(|margin| margin.to_string()),
        "policy" => config.site.rules.policy.map(|policy| policy.to_string()),
        _ => None,
    };
    let mut page = String::from("setting     value                     from\n");
    for key in KEYS {
        let (value, origin) = match (config.find(key.name), of_site(key.name), site) {
            (Some(found), ..) => (found.value.to_owned(), found.layer.origin.clone()),
            (None, Some(value), Some(file)) => (value, format!("`{}`", shown(file))),
            _ if key.default.is_empty() => ("–".to_owned(), "not set".to_owned()),
            _ => (key.default.to_owned(), "default".to_owned()),
        };
        let _ = writeln!(page, "{:<11} {value:<25} {origin}", key.name);
    }
    match site {
        None => page += "site        –                         no site file\n",
        Some(file) => {
            let gpus: Vec<&str> =
                config.site.gpus.iter().map(|gpu| gpu.device.name.as_str()).collect();
            let _ = writeln!(page, "site        {:<25} `{}`", gpus.join(", "), shown(file));
        }
    }
    page
}
