//! Width and color of the terminal.

use std::io::IsTerminal;
use std::path::Path;
use xmem_report::text::{Color, Style};

/// The width if it is not known.
const DEFAULT_WIDTH: usize = 100;

/// The style of text on standard output, or in `file`.
pub(crate) fn of_output(file: Option<&Path>) -> Style {
    let on_terminal = file.is_none() && std::io::stdout().is_terminal();
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let measured = || {
        let (width, _) = on_terminal.then(terminal_size::terminal_size).flatten()?;
        Some(usize::from(width.0))
    };
    Style { color: color(on_terminal), width: columns.or_else(measured).unwrap_or(DEFAULT_WIDTH) }
}

/// The color of text on standard error.
pub(crate) fn of_errors() -> Color {
    color(std::io::stderr().is_terminal())
}

/// Any non-empty value of `NO_COLOR` disables color (<https://no-color.org>), and one of `CLICOLOR_FORCE` that is not 0 enables
/// it even if the output is not a terminal, such as the log of a build (<https://bixense.com/clicolors>).
fn color(on_terminal: bool) -> Color {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_forced = || variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let is_capable = || std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
    let is_wanted = is_forced() || on_terminal && is_capable();
    if variable("NO_COLOR").is_none() && is_wanted { Color::Ansi } else { Color::Plain }
}
