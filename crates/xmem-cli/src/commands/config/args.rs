//! Arguments of `xmem config`.

use crate::config::SettingsArgs;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  xmem config\n  xmem config --format schema > site.schema.json\n  \
        xmem config --site /etc/xmem/site.toml --format lua > /etc/slurm/xmem_site.lua"
)]
pub(crate) struct ConfigArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = ConfigFormat::Text)]
    pub(crate) format: ConfigFormat,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// The output format of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigFormat {
    /// Each setting with its value and where it comes from
    Text,
    /// The site file as a table for contrib/slurm/job_submit.lua
    Lua,
    /// The site file as a ValidatingAdmissionPolicy of Kubernetes, which needs no webhook
    AdmissionPolicy,
    /// The JSON Schema of the site file
    Schema,
}
