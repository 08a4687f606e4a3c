//! Width and color of the terminal.

use std::io::IsTerminal;
use std::path::Path;
use xmem_report::text::{Color, Style};

/// The width if it is not known.
const DEFAULT_WIDTH: usize = 100;

/// The style of text on standard output, or in `file`.
pub(crate) fn of_output(file: Option<&Path>) -> Style {
    let on_terminal = file.is_none() && std::io::stdout().is_terminal();
    let color = if on_terminal && color_is_wanted() { Color::Ansi } else { Color::Plain };
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let measured = || {
        let (width, _) = on_terminal.then(terminal_size::terminal_size).flatten()?;
        Some(usize::from(width.0))
    };
    Style { color, width: columns.or_else(measured).unwrap_or(DEFAULT_WIDTH) }
}

/// The color of text on standard error.
pub(crate) fn of_errors() -> Color {
    if std::io::stderr().is_terminal() && color_is_wanted() { Color::Ansi } else { Color::Plain }
}

/// Any non-empty value of `NO_COLOR` disables color (<https://no-color.org>).
fn color_is_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}
