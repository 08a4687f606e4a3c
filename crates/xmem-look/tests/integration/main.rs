//! The browser, and its session in a terminal. One program, so that it is linked once.

mod browser;
mod terminal;
