//! Errors as the user sees them: the problem, its place, what to do next, and the exit code.
//!
//! Each command and each part that commands share defines its own errors, with [`failures!`]; [`CliError`] only carries
//! them to the end of the program.

mod explanation;
mod shown;

pub use explanation::Explanation;
pub(crate) use explanation::USAGE;

use crate::exit::Exit;
use crate::terminal;
use miette::Diagnostic;
use shown::Shown;
use textwrap::{WordSeparator, WordSplitter};

/// An error that ends a command, or the work on one trace.
pub(crate) trait Failure: Diagnostic + Send + Sync + 'static {
    /// The exit code of a program that it ends.
    fn exit(&self) -> Exit;

    /// The code of the error, which `xmem explain` explains.
    fn error_code(&self) -> &'static str;
}

/// Defines an enum of errors that are failures: behind the `=>` of each variant are its exit code and its code, without
/// which it does not compile, and in braces the explanation of the code. A variant without braces has the code of another
/// one, whose explanation is about both.
macro_rules! failures {
    (
        $(#[$of_enum:meta])*
        $visibility:vis enum $name:ident {
            $(
                $(#[$of_variant:meta])*
                $variant:ident $({ $($field:tt)* })? $(($($inner:tt)*))? => $exit:ident $code:ident $({ $($explanation:tt)* })?,
            )+
        }
    ) => {
        $(#[$of_enum])*
        $visibility enum $name {
            $(
                $(#[$of_variant])*
                $variant $({ $($field)* })? $(($($inner)*))?,
            )+
        }

        impl $name {
            /// The explanations of the codes.
            pub(crate) const EXPLAINED: &'static [$crate::error::Explanation] = &[
                $($($crate::error::Explanation {
                    code: stringify!($code),
                    exit: $crate::exit::Exit::$exit,
                    $($explanation)*
                },)?)+
            ];
        }

        impl $crate::error::Failure for $name {
            fn exit(&self) -> $crate::exit::Exit {
                match self {
                    $(Self::$variant { .. } => $crate::exit::Exit::$exit,)+
                }
            }

            fn error_code(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($code),)+
                }
            }
        }
    };
}

pub(crate) use failures;

/// Any of the errors.
#[derive(Debug)]
pub(crate) struct CliError(Box<dyn Failure>);

impl<F: Failure> From<F> for CliError {
    fn from(failure: F) -> Self {
        Self(Box::new(failure))
    }
}

impl CliError {
    /// The message, and those of its causes, in one line.
    pub(crate) fn with_causes(&self) -> String {
        let error: &(dyn std::error::Error + 'static) = &*self.0;
        let causes = std::iter::successors(Some(error), |error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    /// The message.
    #[cfg(test)]
    pub(crate) fn message(&self) -> String {
        self.0.to_string()
    }

    /// The code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> &'static str {
        self.0.error_code()
    }

    /// Prints the error on standard error and returns its exit code.
    pub(crate) fn print(self) -> Exit {
        let (exit, code) = (self.0.exit(), self.0.error_code());
        print(self.0 as Box<dyn Diagnostic + Send + Sync>, code);
        exit
    }
}

/// Prints an error or a warning with its code on standard error.
pub(crate) fn print(diagnostic: impl Into<Box<dyn Diagnostic + Send + Sync>>, code: &str) {
    terminal::print_report(&miette::Report::new(Shown::new(diagnostic.into(), code)));
}

/// Sets the layout of errors: lines end between words only, so that names of options and paths can be copied as they are.
pub(crate) fn set_layout() {
    // A layout that was set before stays.
    let _ = miette::set_hook(Box::new(|_| {
        let options = miette::MietteHandlerOpts::new()
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false);
        Box::new(options.build())
    }));
}
