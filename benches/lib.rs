//! What the benches share; see the `[[bench]]` targets.

#[cfg(feature = "clock")]
pub mod clock;
#[cfg(feature = "recorded")]
pub mod large;
pub mod synthetic;

/// Whether a bench without criterion's filter is wanted: all are, or those that the command line names.
/// Cargo gives every bench the same names; criterion's others take part of a name, too.
#[must_use]
pub fn is_wanted(bench: &str) -> bool {
    let mut names = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    names.all(|name| bench.contains(&name) || name.contains(bench))
}
