//! What the benches share; see the `[[bench]]` targets.

#[cfg(feature = "clock")]
pub mod clock;
#[cfg(feature = "recorded")]
pub mod large;
pub mod synthetic;
