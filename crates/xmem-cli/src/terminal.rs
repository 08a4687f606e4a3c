//! What the terminal can show.

use std::io::IsTerminal;
use std::path::Path;
use xmem_report::text::{Colour, Look};

/// Columns where nobody tells.
const USUAL_WIDTH: usize = 100;

/// How text looks on standard output, or in `file`.
pub(crate) fn look(file: Option<&Path>) -> Look {
    let on_terminal = file.is_none() && std::io::stdout().is_terminal();
    let colour = if on_terminal && colour_is_wanted() { Colour::Ansi } else { Colour::Plain };
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let measured = || {
        let (width, _) = on_terminal.then(terminal_size::terminal_size).flatten()?;
        Some(usize::from(width.0))
    };
    Look { colour, width: columns.or_else(measured).unwrap_or(USUAL_WIDTH) }
}

/// Whether logs on standard error are coloured.
pub(crate) fn colour_of_stderr() -> bool {
    std::io::stderr().is_terminal() && colour_is_wanted()
}

/// <https://no-color.org>: any non-empty value switches colour off.
fn colour_is_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}
