//! Errors as the user sees them: the problem, its place, what to do next, and the exit code.
//!
//! Each command and each part that commands share defines its own errors, with [`failures!`]; [`CliError`] only carries
//! them to the end of the program.

mod shown;

use crate::exit::Exit;
use crate::terminal;
use miette::Diagnostic;
use shown::Shown;
use textwrap::WordSplitter;

/// An error that ends a command, or the work on one trace.
pub(crate) trait Failure: Diagnostic + Send + Sync + 'static {
    /// The exit code of a program that it ends.
    fn exit(&self) -> Exit;
}

/// Defines an enum of errors that are failures: behind the `=>` of each variant is its exit code, without which it does not
/// compile.
macro_rules! failures {
    (
        $(#[$of_enum:meta])*
        $visibility:vis enum $name:ident {
            $(
                $(#[$of_variant:meta])*
                $variant:ident $({ $($field:tt)* })? $(($($inner:tt)*))? => $exit:ident,
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

        impl $crate::error::Failure for $name {
            fn exit(&self) -> $crate::exit::Exit {
                match self {
                    $(Self::$variant { .. } => $crate::exit::Exit::$exit,)+
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

    /// Prints the error on standard error and returns its exit code.
    pub(crate) fn print(self) -> Exit {
        let exit = self.0.exit();
        print(self.0 as Box<dyn Diagnostic + Send + Sync>);
        exit
    }
}

/// Prints an error or a warning on standard error.
pub(crate) fn print(diagnostic: impl Into<Box<dyn Diagnostic + Send + Sync>>) {
    terminal::print_report(&miette::Report::new(Shown::new(diagnostic.into())));
}

/// Sets the layout of errors: names of options are not split at their hyphens.
pub(crate) fn set_layout() {
    // A layout that was set before stays.
    let _ = miette::set_hook(Box::new(|_| {
        let options = miette::MietteHandlerOpts::new().word_splitter(WordSplitter::NoHyphenation);
        Box::new(options.build())
    }));
}
