//! Arguments of `xmem devices`.

use crate::format::PlainFormat;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  xmem devices\n  xmem devices a100 4090\n  xmem devices --mig\n  xmem devices --format json | jq '.devices[].name'"
)]
pub(crate) struct DevicesArgs {
    /// Only these: a name, or a model (a100) with all its sizes
    #[arg(value_name = "NAME", conflicts_with = "mig")]
    pub(crate) names: Vec<String>,
    /// List the MIG slices
    #[arg(long)]
    pub(crate) mig: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}
