//! `xmem devices`.

mod args;
mod run;

pub(crate) use args::DevicesArgs;
pub(crate) use run::run;
