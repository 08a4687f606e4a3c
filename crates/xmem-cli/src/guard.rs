//! Panics, which are bugs: each becomes an error of the input that was being processed.

use crate::error::{Explanation, Failure};
use crate::exit::Exit;
use crate::terminal;
use miette::Diagnostic;
use std::any::Any;
use std::backtrace::Backtrace;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panicked {
    /// Its message, with its place in the source if that is known.
    pub(crate) message: String,
}

/// The error of a bug.
#[derive(Debug, Error, Diagnostic)]
#[error("internal error{}: {message}", of.as_ref().map_or_else(String::new, |of| format!(" while processing `{of}`")))]
#[diagnostic(help(
    "this is a bug in xmem: please report it with the output of `xmem --version`, the command line \
     and, if possible, the input; RUST_BACKTRACE=1 prints where it happened"
))]
pub(crate) struct InternalError {
    /// The input that was being processed.
    of: Option<String>,
    message: String,
}

impl InternalError {
    /// The error of a bug that was met while `of` was processed.
    pub(crate) fn new(of: Option<&str>, Panicked { message }: Panicked) -> Self {
        Self { of: of.map(str::to_owned), message }
    }
}

impl Failure for InternalError {
    fn exit(&self) -> Exit {
        Exit::Unreadable
    }

    fn error_code(&self) -> &'static str {
        CODE
    }
}

/// The code of a bug.
pub(crate) const CODE: &str = "XM0002";

/// Its explanation.
pub(crate) const EXPLAINED: &[Explanation] = &[Explanation {
    code: CODE,
    exit: Exit::Unreadable,
    title: "internal error",
    cause: "xmem has a bug that this input triggers. Answers about other inputs are not affected.",
    example: "xmem replay odd.json --device t4-16g",
    fix: "Report it with the output of `xmem --version`, the command line and, if possible, the input. `xmem inspect TRACE \
        --redact FILE` writes a copy of a trace without names.",
}];

/// The places of panics that were not yet caught, by their messages.
static PLACES: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The number of places that are kept: one for each thread that may panic at the same time.
const MAX_PLACES: usize = 64;

/// Keeps panics from printing; with `RUST_BACKTRACE`, they print where they come from.
pub(crate) fn install() {
    let trace = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    panic::set_hook(Box::new(move |info| {
        let (message, place) = (message(info.payload()), place(info));
        if trace {
            terminal::say(&format!("panic at {place}: {message}\n{}", Backtrace::force_capture()));
        }
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() < MAX_PLACES {
            places.push((message, place));
        }
    }));
}

/// Runs `work`, and returns a panic in it as an error.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let message = message(&*payload);
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.iter().position(|(of, _)| *of == message);
        let message = match place.map(|at| places.swap_remove(at)) {
            Some((_, place)) => format!("{message} (at {place})"),
            None => message,
        };
        Panicked { message }
    })
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("panic without a message").to_owned()
}

fn place(info: &PanicHookInfo<'_>) -> String {
    info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message_and_place() {
        install();
        let formatted = catch(|| panic!("block {} is gone", 7)).map(|()| 0);
        let plain = catch(|| panic!("gone")).map(|()| 0);
        for (caught, said) in [(formatted, "block 7 is gone (at "), (plain, "gone (at ")] {
            let message = caught.expect_err("a panic").message;
            assert!(message.starts_with(said) && message.contains("guard.rs"), "{message}");
        }
        assert_eq!(catch(|| 7), Ok(7));
    }
}
