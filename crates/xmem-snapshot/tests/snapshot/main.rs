//! Whole snapshots: hand-made, random, recorded.

mod layout;
mod python;
mod random;
mod recorded;
mod requests;
mod support;
mod written;
