//! The notes of `xmem profile` in the head of a trace.

use serde_json::Value;
use std::ops::Range;

const KEY: &str = "\"xmem_recording\":";

/// The key of what follows the recorded iterations of a script.
const REST: &str = "\"xmem_rest\":";

/// The place of the value of a key.
fn place(head: &str, key: &str) -> Option<Range<usize>> {
    let start = head.find(key)? + key.len();
    let mut values = serde_json::Deserializer::from_str(&head[start..]).into_iter::<Value>();
    values.next()?.ok()?;
    Some(start..start + values.byte_offset())
}

/// Changes the notes, if there are any.
pub(crate) fn change(head: &mut String, change: impl FnOnce(&mut Value)) {
    change_value(head, KEY, change);
}

/// Changes what follows the recorded iterations, if it is there.
pub(crate) fn change_rest(head: &mut String, change: impl FnOnce(&mut Value)) {
    change_value(head, REST, change);
}

fn change_value(head: &mut String, key: &str, change: impl FnOnce(&mut Value)) {
    let Some(place) = place(head, key) else { return };
    let Ok(mut notes) = serde_json::from_str(&head[place.clone()]) else { return };
    change(&mut notes);
    head.replace_range(place, &notes.to_string());
}

/// Removes the notes.
pub(crate) fn remove(head: &mut String) {
    remove_value(head, KEY);
}

/// Removes what follows the recorded iterations.
pub(crate) fn remove_rest(head: &mut String) {
    remove_value(head, REST);
}

fn remove_value(head: &mut String, key: &str) {
    let Some(place) = place(head, key) else { return };
    let end = place.end + head[place.end..].find(',').map_or(0, |comma| comma + 1);
    head.replace_range(place.start - key.len()..end, "");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_changed_and_removed() {
        let mut head = r#"{"a": 1, "xmem_recording": {"b": [2]}, "traceEvents": ["#.to_owned();
        change(&mut head, |notes| notes["b"] = 3.into());
        assert_eq!(head, r#"{"a": 1, "xmem_recording":{"b":3}, "traceEvents": ["#);
        remove(&mut head);
        assert_eq!(head, r#"{"a": 1,  "traceEvents": ["#);
        change(&mut head, |notes| *notes = Value::Null);
        assert_eq!(head, r#"{"a": 1,  "traceEvents": ["#);
    }
}
