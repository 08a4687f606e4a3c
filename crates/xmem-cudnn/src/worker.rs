//! The worker process, which has cuDNN loaded: questions in, answers out.

use crate::backend::Backend;
use crate::heuristics::Device;
#[cfg(unix)]
use crate::parent;
use crate::preload::preload_stubs;
use crate::query::Query;
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;

/// The variable that has the id of the worker's parent.
pub(crate) const PARENT_VARIABLE: &str = "XMEM_CUDNN_PARENT";
/// The beginning of the line with the library's version.
pub(crate) const VERSION: &str = "cudnn ";
/// The beginning of a line of sizes.
pub(crate) const ANSWER: &str = "= ";
/// The beginning of a line with the reason why cuDNN has no sizes.
pub(crate) const REFUSAL: &str = "! ";

/// An error and its causes, in one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Loads the library, then answers until the input ends: the body of a worker process.
///
/// The first line of the input has the device's properties; each other line is a question, answered by
/// one line before the next is read. The first line of the output is the library's version.
/// Lines that the library prints itself begin in other ways.
///
/// # Errors
/// If the library cannot be loaded or refuses the device, or if a stream fails.
///
/// # Process
/// The code of the library runs in this process, which should serve no other purpose: a fault in the
/// library ends it. It also ends with its parent, even while the library does not return.
pub fn serve(
    library: &Path,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Box<dyn Error>> {
    #[cfg(unix)]
    parent::end_with(parent::of_worker(PARENT_VARIABLE));
    preload_stubs()?;
    let backend = match Backend::load(library) {
        Ok(backend) => backend,
        Err(error) => {
            writeln!(output, "{REFUSAL}{}", with_causes(&error).replace('\n', " "))?;
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
        match Query::parse(line.trim_end()).map(|query| device.workspaces(&query)) {
            Some(Ok(sizes)) => {
                let sizes: Vec<String> = sizes.iter().map(|size| size.get().to_string()).collect();
                writeln!(output, "{ANSWER}{}", sizes.join(" "))?;
            }
            Some(Err(refusal)) => writeln!(output, "{REFUSAL}{refusal}")?,
            None => writeln!(output, "{REFUSAL}not a convolution")?,
        }
        output.flush()?;
    }
}
