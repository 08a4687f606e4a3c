//! `xmem serve`.

mod args;
mod error;
mod run;

pub(crate) use args::ServeArgs;
pub(crate) use error::EXPLAINED;
pub(crate) use run::run;
