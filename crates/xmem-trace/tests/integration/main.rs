//! Traces that are broken, odd, random, or read in two ways. One program, so that it is linked once.

mod broken;
mod differential;
mod quirks;
mod random;
mod sealed;
mod support;
