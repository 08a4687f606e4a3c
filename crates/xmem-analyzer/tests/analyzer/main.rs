//! The analyzer from outside: made-up traces event by event, and recorded ones.
//!
//! `UPDATE_EXPECT=1 cargo test -p xmem-analyzer` rewrites the expected texts.

mod absurd;
mod gpu;
mod growth;
mod history_roles;
mod lines;
mod loops;
mod pairing;
mod profiled;
#[expect(clippy::disallowed_methods, reason = "the recorded traces of the repository are read")]
mod recorded;
mod support;
mod table;
mod tree;
