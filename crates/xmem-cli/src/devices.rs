//! `xmem devices`.

use crate::Outcome;
use crate::args::{DevicesArgs, PlainFormat};
use crate::exit::Exit;
use crate::{output, style};
use xmem_report::json::{self, DevicesDocument};
use xmem_report::text;

/// Runs the command.
pub(crate) fn run(args: &DevicesArgs) -> Outcome {
    let devices = xmem::devices().iter().filter(|device| device.is_slice() == args.mig);
    let style = style::of_output(None);
    let page = match args.format {
        PlainFormat::Json => json::pretty(&DevicesDocument::new(devices)),
        PlainFormat::Text if args.mig => text::slices(devices, &style),
        PlainFormat::Text => text::devices(devices, &style),
    };
    output::write(page.as_bytes(), None)?;
    Ok(Exit::Fits)
}
