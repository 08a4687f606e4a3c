//! Criterion benches; see the `[[bench]]` targets.
