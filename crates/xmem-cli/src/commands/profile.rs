//! `xmem profile`.

mod address_space;
mod args;
mod convolutions;
mod error;
mod explained;
mod hints;
mod progress;
mod range;
mod ranks;
mod recording;
mod run;
mod then;
mod values;

pub(crate) use args::{ProfileArgs, SHORT_HELP, assumptions};
pub(crate) use convolutions::keep as keep_convolutions;
pub(crate) use error::ProfileFailure;
pub(crate) use explained::EXPLAINED;
pub(crate) use hints::before as check_command;
pub(crate) use progress::{RecordingProgress, kept_out};
pub(crate) use ranks::alone;
pub(crate) use recording::print_cut_short;
pub(crate) use run::run;
pub(crate) use run::writable;
