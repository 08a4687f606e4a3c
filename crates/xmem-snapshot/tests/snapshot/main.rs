//! Whole snapshots: hand-made, random, recorded.

mod compressed;
mod layout;
mod python;
mod random;
mod recorded;
mod requests;
mod support;
mod versions;
mod written;
