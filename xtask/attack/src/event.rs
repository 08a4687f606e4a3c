//! One event of a trace as text, with access to its fields.

use std::borrow::Cow;
use std::ops::Range;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Operator,
    Annotation,
    Python,
    Memory,
    Flow,
    Other,
}

/// An event: the text of the recording until it is edited.
#[derive(Clone, Debug)]
pub(crate) struct Event<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) class: Class,
}

impl<'t> Event<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let mut event = Self { text: Cow::Borrowed(text), class: Class::Other };
        event.class = match event.string("cat") {
            Some("cpu_op") => Class::Operator,
            Some("user_annotation") => Class::Annotation,
            Some("python_function") => Class::Python,
            Some("cpu_instant_event") if event.string("name") == Some("[memory]") => Class::Memory,
            Some("fwdbwd" | "ac2g") => Class::Flow,
            _ => Class::Other,
        };
        event
    }

    /// The text of a field's value; the key may stand in the event or in its arguments.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        Some(&self.text[self.place(key)?])
    }

    /// A value that is a text, without its quotes.
    pub(crate) fn string(&self, key: &str) -> Option<&str> {
        self.value(key)?.strip_prefix('"')?.strip_suffix('"')
    }

    /// A value that is a whole number.
    pub(crate) fn whole(&self, key: &str) -> Option<i64> {
        self.value(key)?.parse().ok()
    }

    /// A value in microseconds, as nanoseconds.
    pub(crate) fn nanos(&self, key: &str) -> Option<i64> {
        let (whole, fraction) = self.value(key)?.split_once('.').unwrap_or((self.value(key)?, ""));
        let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
        Some(whole.parse::<i64>().ok()? * 1000 + digits.parse::<i64>().ok()?)
    }

    pub(crate) fn start(&self) -> i64 {
        self.nanos("ts").unwrap_or(0)
    }

    pub(crate) fn end(&self) -> i64 {
        self.start() + self.nanos("dur").unwrap_or(0)
    }

    pub(crate) fn name(&self) -> &str {
        self.string("name").unwrap_or_default()
    }

    /// Replaces the value of a field that is there.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        if let Some(place) = self.place(key) {
            self.text.to_mut().replace_range(place, value);
        }
    }

    pub(crate) fn set_nanos(&mut self, key: &str, nanos: i64) {
        let sign = if nanos < 0 { "-" } else { "" };
        let value = nanos.unsigned_abs();
        self.set(key, &format!("{sign}{}.{:03}", value / 1000, value % 1000));
    }

    /// Replaces the value by what is made of it.
    pub(crate) fn change(&mut self, key: &str, change: impl FnOnce(&str) -> String) {
        if let Some(changed) = self.value(key).map(change) {
            self.set(key, &changed);
        }
    }

    /// Removes a field with its comma.
    pub(crate) fn remove(&mut self, key: &str) {
        let Some(value) = self.place(key) else { return };
        let text = self.text.to_mut();
        let from = text[..value.start].rfind(&format!("\"{key}\"")).expect("the key was found");
        let after = text[value.end..].trim_start();
        if let Some(rest) = after.strip_prefix(',') {
            let end = text.len() - rest.trim_start().len();
            text.replace_range(from..end, "");
        } else {
            let before = text[..from].trim_end();
            let from = before.strip_suffix(',').map_or(from, str::len);
            text.replace_range(from..value.end, "");
        }
    }

    /// Where the value of a field stands.
    fn place(&self, key: &str) -> Option<Range<usize>> {
        let text = &*self.text;
        let quoted = format!("\"{key}\":");
        let colon = text.find(&quoted)? + quoted.len();
        let start = colon + (text[colon..].len() - text[colon..].trim_start().len());
        Some(start..start + value_length(&text.as_bytes()[start..]))
    }
}

/// The length of the JSON value at the beginning of these bytes.
fn value_length(bytes: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    return at + 1;
                }
            }
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth == 0 => return at,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b'\n' | b' ' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str = "{\n\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\",\n\
        \"ts\": 4377034072113.8,\n\"args\": {\n\"Bytes\": -12, \"Dims\": [[1, 2], \"]\"], \"Ev Idx\": 1535\n}\n}";

    #[test]
    fn fields_are_found_and_edited() {
        let mut event = Event::new(MEMORY);
        assert_eq!(event.class, Class::Memory);
        assert_eq!(event.whole("Bytes"), Some(-12));
        assert_eq!(event.value("Dims"), Some("[[1, 2], \"]\"]"));
        assert_eq!(event.start(), 4_377_034_072_113_800);
        event.set_nanos("ts", -1_002);
        event.change("Bytes", |bytes| format!("{bytes}0"));
        assert_eq!((event.value("ts"), event.whole("Bytes")), (Some("-1.002"), Some(-120)));
    }

    #[test]
    fn removed_fields_leave_valid_json() {
        for keys in
            [&["Ev Idx"][..], &["Bytes"], &["ph"], &["Dims", "Ev Idx", "Bytes"], &["args", "ts"]]
        {
            let mut event = Event::new(MEMORY);
            for key in keys {
                event.remove(key);
                assert_eq!(event.value(key), None);
            }
            serde_json::from_str::<serde_json::Value>(&event.text).expect("valid JSON");
        }
    }
}
