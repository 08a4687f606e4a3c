//! Criterion benches; see the `[[bench]]` targets.

pub mod large;
