//! Numbers and lists as the profiler writes them, without the machinery of `std::fmt`: most of a trace consists of them.

use itoa::Integer;

/// A whole number.
pub(crate) fn integer(text: &mut String, value: impl Integer) {
    text.push_str(itoa::Buffer::new().format(value));
}

/// `[1, 2, 3]`.
pub(crate) fn integers(text: &mut String, values: &[i64]) {
    list(text, values.iter(), |text, value| integer(text, *value));
}

/// `[…, …]`.
pub(crate) fn list<T>(
    text: &mut String,
    values: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    text.push('[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        write(text, value);
    }
    text.push(']');
}

/// Python's name of a boolean.
pub(crate) fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
