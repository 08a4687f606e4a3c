//! Logs on standard error, for `-v`, `XMEM_LOG` and the server.

use crate::global::Verbosity;
use crate::terminal::LogLine;
use tracing_subscriber::EnvFilter;

/// The form of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// An object of JSON a line, with the time. There are logs without being asked for.
    Json,
}

/// Starts logging if it was requested; otherwise installs nothing, so that logging costs nothing.
pub(crate) fn start(verbosity: Verbosity, format: LogFormat) {
    let requested = std::env::var("XMEM_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = match (requested, verbosity, format) {
        (Some(filter), _, _) => filter,
        (None, Verbosity::Quiet, LogFormat::Json) => "xmem_serve=warn".to_owned(),
        (None, Verbosity::Normal, LogFormat::Json) => "xmem_serve=info".to_owned(),
        (None, Verbosity::Quiet | Verbosity::Normal, LogFormat::Text) => return,
        (None, Verbosity::Stages, LogFormat::Json) => "xmem_serve=debug".to_owned(),
        (None, Verbosity::Stages, LogFormat::Text) => "xmem=debug".to_owned(),
        (None, Verbosity::Everything, _) => "trace".to_owned(),
    };
    let logs = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(|| LogLine)
        .with_ansi(false);
    match format {
        LogFormat::Text => logs.without_time().init(),
        LogFormat::Json => logs.json().flatten_event(true).with_current_span(false).init(),
    }
}
