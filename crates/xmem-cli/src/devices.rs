//! `xmem devices`.

use crate::Outcome;
use crate::args::{DevicesArgs, PlainFormat};
use crate::exit::Exit;
use crate::{output, style};
use xmem_report::json::{self, DevicesDocument};
use xmem_report::text;

/// Runs the command.
pub(crate) fn run(args: &DevicesArgs) -> Outcome {
    let devices = xmem::devices();
    let page = match args.format {
        PlainFormat::Json => json::pretty(&DevicesDocument::new(devices)),
        PlainFormat::Text => text::devices(devices, &style::of_output(None)),
    };
    output::write(page.as_bytes(), None)?;
    Ok(Exit::Fits)
}
