//! `xmem inspect`.

mod args;
mod redact;
mod run;

pub(crate) use args::InspectArgs;
pub(crate) use run::run;
