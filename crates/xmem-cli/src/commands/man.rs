//! `xmem man`: the manual page.

use crate::commands::Outcome;
use crate::exit::Exit;
use crate::output;
use crate::output::OutputFailure;

/// Prints the manual page of the program.
pub(crate) fn run(command: clap::Command) -> Outcome {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|source| OutputFailure::Stdout { source })?;
    output::bytes(None, |out| Ok(out.write_all(&page)?)).map(|()| Exit::Fits)
}
