//! The only way to standard output and standard error: what is not printable is escaped, whatever it was
//! that put it into the text.

use crate::global::Verbosity;
use crate::style;
use std::borrow::Cow;
use std::io::{self, Write};
use xmem::types::printable;
/// A path, as it stands in messages.
pub(crate) use xmem::types::printable_path as shown;
use xmem_report::text::Color;

/// Standard output, for lines of documents.
pub(crate) fn stdout() -> Escaping<io::StdoutLock<'static>> {
    Escaping::new(raw_stdout(), Color::Plain)
}

/// Standard output, for what is escaped elsewhere, or is not text of this program.
pub(crate) fn raw_stdout() -> io::StdoutLock<'static> {
    io::stdout().lock()
}

/// Standard error.
pub(crate) fn stderr() -> Escaping<io::Stderr> {
    Escaping::new(io::stderr(), Color::Plain)
}

/// Prints a line, or several, on standard error.
pub(crate) fn say(text: &str) {
    // Nothing can be done when standard error itself is closed.
    let _ = writeln!(stderr(), "{text}");
}

/// Prints a note on standard error, unless nothing is to be printed.
pub(crate) fn note(text: &str, verbosity: Verbosity) {
    if verbosity != Verbosity::Quiet {
        say(text);
    }
}

/// Prints errors, whose layout has colors and was made from printable text.
pub(crate) fn print_report(report: &miette::Report) {
    // Nothing can be done when standard error itself is closed.
    let _ = writeln!(io::stderr(), "{report:?}");
}

/// Prints help or an error of clap, which has escaped it, where it belongs: an error with its code.
pub(crate) fn print_usage(error: &clap::Error, code: &str) {
    const BEFORE: &str = "error:";
    let text = error.render();
    let plain = text.to_string();
    if !error.use_stderr() || !plain.starts_with(BEFORE) {
        // Nothing can be done when standard error itself is closed.
        let _ = error.print();
        return;
    }
    let text = match style::of_errors() {
        Color::Ansi => text.ansi().to_string(),
        Color::Plain => plain,
    };
    let _ = write!(io::stderr(), "{}", text.replacen(BEFORE, &format!("error[{code}]:"), 1));
}

/// A writer that escapes what is not printable, except for line feeds and the colors of the report.
pub(crate) struct Escaping<W> {
    out: W,
    color: Color,
    /// The beginning of a character whose rest is to come.
    rest: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    pub(crate) fn new(out: W, color: Color) -> Self {
        Self { out, color, rest: Vec::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.out.write_all(self.color.printable(text).as_bytes()),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                let text = String::from_utf8_lossy(valid);
                self.out.write_all(self.color.printable(&text).as_bytes())?;
                match error.error_len() {
                    None => {
                        self.rest = rest.to_vec();
                        Ok(())
                    }
                    Some(length) => {
                        self.out.write_all("\u{fffd}".as_bytes())?;
                        self.put(&rest[length..])
                    }
                }
            }
        }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let begun = std::mem::take(&mut self.rest);
        let all = if begun.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            [&begun[..], bytes].concat().into()
        };
        self.put(&all)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The writer of logs: one line for each event.
pub(crate) struct LogLine;

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let line = printable(line.trim_end_matches('\n'));
        writeln!(stderr(), "{line}")?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_wherever_writes_cut_it() {
        let text = "é\u{202e}模\u{1b}[0m\n".as_bytes();
        for at in 0..text.len() {
            let mut out = Escaping::new(Vec::new(), Color::Plain);
            out.write_all(&text[..at]).expect("memory");
            out.write_all(&text[at..]).expect("memory");
            assert_eq!(String::from_utf8(out.out).expect("text"), "é\\u202e模\\u001b[0m\n", "{at}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        let mut out = Escaping::new(Vec::new(), Color::Ansi);
        out.write_all(b"a\xffb\x9bc").expect("memory");
        assert_eq!(String::from_utf8(out.out).expect("text"), "a\u{fffd}b\u{fffd}c");
    }
}
