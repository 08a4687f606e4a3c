//! What is expected of an output or of a value in an answer.

use serde::Deserialize;
use serde_json::Value;

/// Stands for any text within a line.
const ANYTHING: &str = "…";

/// What a value in an answer must be.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Expectation {
    Bound(Bound),
    Is(Value),
}

/// A looser demand than equality.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// A text in which this stands, or a list with this or with an object that has these fields.
    Contains(Value),
    Length(usize),
    /// Nothing is there, or null.
    Absent(bool),
}

impl Expectation {
    /// What is wrong with the value at `pointer`, if anything.
    pub(super) fn complaint(&self, pointer: &str, answer: &Value) -> Option<String> {
        let found = answer.pointer(pointer).unwrap_or(&Value::Null);
        let holds = match self {
            Self::Is(wanted) => found == wanted,
            Self::Bound(Bound::AtLeast(least)) => found.as_f64().is_some_and(|it| it >= *least),
            Self::Bound(Bound::AtMost(most)) => found.as_f64().is_some_and(|it| it <= *most),
            Self::Bound(Bound::Contains(part)) => contains(found, part),
            Self::Bound(Bound::Length(length)) => {
                found.as_array().is_some_and(|list| list.len() == *length)
            }
            Self::Bound(Bound::Absent(absent)) => found.is_null() == *absent,
        };
        (!holds).then(|| format!("`{pointer}` is {}, expected {self:?}", shortened(found)))
    }
}

fn contains(found: &Value, part: &Value) -> bool {
    match (found, part) {
        (Value::String(found), Value::String(part)) => found.contains(part.as_str()),
        (Value::Array(list), part) => {
            list.iter().any(|item| item == part || has_fields(item, part))
        }
        _ => has_fields(found, part),
    }
}

fn has_fields(found: &Value, part: &Value) -> bool {
    match (found, part) {
        (Value::Object(found), Value::Object(part)) => {
            part.iter().all(|(name, value)| found.get(name) == Some(value))
        }
        _ => false,
    }
}

fn shortened(value: &Value) -> String {
    const LONGEST: usize = 300;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Which of the wanted lines are not in the text, and which unwanted ones are.
pub(super) fn lines(name: &str, text: &str, wanted: &[String], unwanted: &[String]) -> Vec<String> {
    let text = unwrapped(text);
    let is_there = |pattern: &String| text.lines().any(|line| matches(line, pattern));
    let missing = wanted
        .iter()
        .filter(|pattern| !is_there(pattern))
        .map(|pattern| format!("no line `{pattern}` on {name}"));
    let forbidden = unwanted
        .iter()
        .filter(|pattern| is_there(pattern))
        .map(|pattern| format!("a line `{pattern}` on {name}"));
    missing.chain(forbidden).collect()
}

/// The text with each message in one line: xmem wraps messages to the width of a terminal, after a bar or under the
/// text behind `help: `.
fn unwrapped(text: &str) -> String {
    const UNDER_HELP: &str = "        ";
    let mut whole = String::with_capacity(text.len());
    for line in text.lines() {
        let continued = line
            .trim_start()
            .strip_prefix("│ ")
            .or_else(|| line.strip_prefix(UNDER_HELP).filter(|_| whole.contains("help: ")));
        match continued {
            Some(rest) => whole.extend([" ", rest]),
            None => whole.extend(["\n", line]),
        }
    }
    whole
}

/// Whether all parts of the pattern stand in the line, in this order.
fn matches(line: &str, pattern: &str) -> bool {
    let mut rest = line;
    pattern.split(ANYTHING).all(|part| match rest.find(part) {
        Some(start) => {
            rest = &rest[start + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complaint(expectation: &str, answer: &Value) -> Option<String> {
        let table: toml::Table = format!("it = {expectation}").parse().unwrap();
        let parsed: Expectation = table["it"].clone().try_into().unwrap();
        parsed.complaint("/a", answer)
    }

    #[test]
    fn each_kind_of_expectation_can_hold_and_fail() {
        for (expectation, good, bad) in [
            ("3", json!(3), json!(4)),
            ("\"x\"", json!("x"), json!(null)),
            ("[1, 2]", json!([1, 2]), json!([2, 1])),
            ("{ at-least = 3 }", json!(3), json!(2)),
            ("{ at-most = 3 }", json!(3), json!(4)),
            ("{ contains = \"b\" }", json!("abc"), json!("ac")),
            ("{ contains = \"b\" }", json!(["a", "b"]), json!(["ab"])),
            ("{ contains = { b = 1 } }", json!([{"b": 1, "c": 2}]), json!([{"b": 2}])),
            ("{ length = 2 }", json!([1, 2]), json!([1])),
            ("{ absent = true }", json!(null), json!(1)),
        ] {
            assert_eq!(complaint(expectation, &json!({ "a": good })), None);
            assert!(complaint(expectation, &json!({ "a": bad })).is_some(), "{expectation}");
        }
    }

    #[test]
    fn a_wrapped_message_is_one_line() {
        let text = "  ⚠ the script raised\n  │ an error\n  help: go\n        on\nnext\n";
        let wanted = ["the script raised an error", "help: go on"].map(str::to_owned);
        assert_eq!(lines("stderr", text, &wanted, &["on … next".to_owned()]), [""; 0]);
    }

    #[test]
    fn lines_match_by_their_parts_in_order() {
        let wanted = |pattern: &str| lines("stdout", "a 1 b\nc\n", &[pattern.to_owned()], &[]);
        assert_eq!(wanted("a … b"), [""; 0]);
        assert_eq!(wanted("b … a"), ["no line `b … a` on stdout"]);
        assert_eq!(wanted("b\nc").len(), 1);
        let unwanted = lines("stderr", "Traceback\n", &[], &["Trace".to_owned()]);
        assert_eq!(unwanted, ["a line `Trace` on stderr"]);
    }
}
