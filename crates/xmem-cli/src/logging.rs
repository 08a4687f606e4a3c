//! Logs on standard error, for `-v` and `XMEM_LOG`.

use crate::args::Verbosity;
use crate::terminal::LogLine;
use tracing_subscriber::EnvFilter;

/// Starts logging if it was requested; otherwise installs nothing, so that logging costs nothing.
pub(crate) fn start(verbosity: Verbosity) {
    let requested = std::env::var("XMEM_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = match (requested, verbosity) {
        (Some(filter), _) => filter,
        (None, Verbosity::Quiet | Verbosity::Normal) => return,
        (None, Verbosity::Stages) => "xmem=debug".to_owned(),
        (None, Verbosity::Everything) => "trace".to_owned(),
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(|| LogLine)
        .with_ansi(false)
        .without_time()
        .init();
}
