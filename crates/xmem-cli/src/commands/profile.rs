//! `xmem profile`.

mod address_space;
mod args;
mod convolutions;
mod error;
mod hints;
mod progress;
mod range;
mod ranks;
mod recording;
mod run;
mod then;
mod values;

pub(crate) use args::{ProfileArgs, SHORT_HELP};
pub(crate) use run::run;
