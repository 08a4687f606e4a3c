//! Arguments that name files of settings.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Where settings come from.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// The site file (default: XMEM_SITE, else /etc/xmem/site.toml if there is one)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) site: Option<PathBuf>,
    /// Use only options and the site file: no XMEM_* variables, no xmem.toml, no user file
    #[arg(long)]
    pub(crate) no_config: bool,
}
