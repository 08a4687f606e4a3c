//! `xmem profile`.

mod args;
mod convolutions;
mod hints;
mod progress;
mod range;
mod ranks;
mod run;
mod then;

pub(crate) use args::ProfileArgs;
pub(crate) use run::run;
