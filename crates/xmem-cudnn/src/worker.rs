//! The process that has cuDNN loaded: questions in, answers out.

use crate::backend::{self, Backend};
use crate::heuristics::Device;
use crate::question::Question;
use crate::{elf, stand_in};
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;

/// How a line begins that says the library's version.
pub(crate) const VERSION: &str = "cudnn ";
/// How a line begins that lists sizes.
pub(crate) const ANSWER: &str = "= ";
/// How a line begins that says why there are none.
pub(crate) const REFUSAL: &str = "! ";

/// An error with its causes.
pub(crate) fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Loads the library, then answers until the input ends.
///
/// The first line of the input is the device's properties; each other line is a question, and is
/// answered by a line before the next is read. The first line of the output is the library's version.
/// What the library itself may print is told apart by how a line begins.
///
/// # Errors
/// If the library cannot be loaded, takes no such device, or a stream breaks.
pub fn serve(
    library: &Path,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Box<dyn Error>> {
    preload_stand_ins()?;
    let backend = match Backend::load(library) {
        Ok(backend) => backend,
        Err(error) => {
            writeln!(output, "{REFUSAL}{}", told(&error).replace('\n', " "))?;
            return Err(error.into());
        }
    };
    writeln!(output, "{VERSION}{}", backend.version())?;
    output.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    let device = Device::new(&backend, line.trim_end())?;
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match Question::parse(line.trim_end()).map(|question| device.workspaces(&question)) {
            Some(Ok(sizes)) => {
                let sizes: Vec<String> = sizes.iter().map(|size| size.get().to_string()).collect();
                writeln!(output, "{ANSWER}{}", sizes.join(" "))?;
            }
            Some(Err(refusal)) => writeln!(output, "{REFUSAL}{refusal}")?,
            None => writeln!(output, "{REFUSAL}not a question")?,
        }
        output.flush()?;
    }
}

/// Puts the libraries that a GPU machine has in place.
fn preload_stand_ins() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for stand_in in stand_in::all() {
        for name in stand_in.names {
            let path = folder.path().join(name);
            let functions = stand_in.functions.iter().map(|f| (f.name, f.address()));
            std::fs::write(&path, elf::library(name, functions))?;
            backend::preload(&path)?;
        }
    }
    Ok(())
}
