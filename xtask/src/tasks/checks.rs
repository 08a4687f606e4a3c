//! Checks of the repository.

use crate::{docs, test, tidy};
use clap::Subcommand;
use xmem_task::Error;

/// What must hold before a change lands.
#[derive(Subcommand)]
pub(crate) enum Checks {
    /// Check what compilers do not: crate graph, module docs, provenance, links
    Tidy,
    /// All that must hold before a change lands: format, tidy, lints, tests, docs
    Test {
        /// Only these steps
        #[arg(value_enum)]
        steps: Vec<test::Step>,
    },
    /// Build the API reference and the book, with warnings denied
    Docs,
    /// Follow the links of all documents to other sites
    Links,
    /// Render the book alone (this is what `docs` starts with the `book` feature on)
    #[command(hide = true)]
    Book,
}

impl Checks {
    pub(crate) fn run(self) -> Result<(), Error> {
        match self {
            Self::Tidy => tidy::run(),
            Self::Test { steps } => test::run(&steps),
            Self::Docs => docs::run(),
            Self::Links => docs::external::run(),
            Self::Book => docs::book(),
        }
    }
}
