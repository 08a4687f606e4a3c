//! Two sets of answers, number by number and text by text.

use super::difference::Difference;
use super::renamed::{Care, Key, Renamed};
use super::set::Subject;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a comparison found.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) differences: Vec<Difference>,
    /// Pairs of answers that were compared.
    answers: usize,
    /// Those that are the same to the byte.
    identical: usize,
    /// Texts with another wording, which may differ.
    reworded: usize,
}

impl Comparison {
    /// Compares answers before and after a change, one JSON document a line.
    pub(super) fn of(
        before: &str,
        after: &str,
        renamed: &Renamed,
    ) -> Result<Self, serde_json::Error> {
        let mut comparison = Self::default();
        let same: BTreeSet<&str> = before.lines().collect();
        let same: BTreeSet<&str> = after.lines().filter(|line| same.contains(line)).collect();
        comparison.identical = same.len();
        comparison.answers = same.len();
        let rest = |text: &str, translate: &dyn Fn(Value) -> Value| {
            let lines = text.lines().filter(|line| !same.contains(line));
            let answers = lines.map(|line| serde_json::from_str(line).map(translate));
            answers
                .map(|answer| answer.map(|answer| (Subject::of(&answer), answer)))
                .collect::<Result<BTreeMap<Subject, Value>, _>>()
        };
        let before = rest(before, &|answer| renamed.translate(answer))?;
        let mut after = rest(after, &|answer| answer)?;
        for (subject, before) in before {
            let Some(after) = after.remove(&subject) else {
                comparison.differences.push(Difference::missing(subject, "an answer", "none"));
                continue;
            };
            comparison.answers += 1;
            let mut walk = Walk { renamed, subject: &subject, found: &mut comparison };
            walk.value(&before, &after, &Key::default(), "");
        }
        for subject in after.into_keys() {
            comparison.differences.push(Difference::missing(subject, "none", "an answer"));
        }
        Ok(comparison)
    }

    /// The counts, in a line.
    pub(super) fn summary(&self) -> String {
        format!(
            "{:>4} answers, {} the same to the byte, {} texts reworded, {} differences",
            self.answers,
            self.identical,
            self.reworded,
            self.differences.len()
        )
    }
}

/// The way through one pair of answers.
struct Walk<'a> {
    renamed: &'a Renamed,
    subject: &'a Subject,
    found: &'a mut Comparison,
}

impl Walk<'_> {
    /// `path` is that of `key` with the positions in lists.
    fn value(&mut self, before: &Value, after: &Value, key: &Key, path: &str) {
        let care = self.renamed.care(key);
        match (before, after) {
            _ if care == Care::Ignored => {}
            (Value::Object(before), Value::Object(after)) => {
                self.object(before, after, key, path);
            }
            (Value::Array(before), Value::Array(after)) => {
                match self.renamed.name_of_elements(key) {
                    Some(name) => self.named(before, after, name, key, path),
                    None => self.list(before, after, key, path),
                }
            }
            _ if before == after => {}
            (Value::String(_), Value::String(_)) if care == Care::Wording => {
                self.found.reworded += 1;
            }
            _ => self.differ(path, before.to_string(), after.to_string()),
        }
    }

    fn object(
        &mut self,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        key: &Key,
        path: &str,
    ) {
        let below = |name: &str| {
            if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
        };
        for (name, before) in before {
            match after.get(name) {
                Some(after) => self.value(before, after, &key.join(name), &below(name)),
                None => self.differ(&below(name), before.to_string(), "no such key".to_owned()),
            }
        }
        for (name, after) in after {
            if !before.contains_key(name) && !self.renamed.is_added(&key.join(name)) {
                self.differ(&below(name), "no such key".to_owned(), after.to_string());
            }
        }
    }

    fn list(&mut self, before: &[Value], after: &[Value], key: &Key, path: &str) {
        if before.len() != after.len() {
            let length = |list: &[Value]| format!("{} elements", list.len());
            self.differ(path, length(before), length(after));
        }
        for (position, (before, after)) in before.iter().zip(after).enumerate() {
            self.value(before, after, key, &format!("{path}[{position}]"));
        }
    }

    /// Elements are paired by their names; without a name, by the position.
    fn named(&mut self, before: &[Value], after: &[Value], name: &str, key: &Key, path: &str) {
        let elements = |list: &[Value]| -> BTreeMap<String, Value> {
            let of = |(position, value): (usize, &Value)| {
                let name = value[name].as_str().map_or(position.to_string(), str::to_owned);
                (name, value.clone())
            };
            list.iter().enumerate().map(of).collect()
        };
        let [named_before, mut named_after] = [elements(before), elements(after)];
        if named_before.len() != before.len() || named_after.len() != after.len() {
            return self.list(before, after, key, path);
        }
        for (name, before) in named_before {
            let path = format!("{path}[{name}]");
            match named_after.remove(&name) {
                Some(after) => self.value(&before, &after, key, &path),
                None => self.differ(&path, before.to_string(), "no such element".to_owned()),
            }
        }
        for (name, after) in named_after {
            let path = format!("{path}[{name}]");
            self.differ(&path, "no such element".to_owned(), after.to_string());
        }
    }

    fn differ(&mut self, path: &str, before: String, after: String) {
        let subject = self.subject.clone();
        self.found.differences.push(Difference { subject, path: path.to_owned(), before, after });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::renamed::tests::renamed;
    use serde_json::json;

    fn answer(trace: &str, rest: &Value) -> Value {
        let mut answer = json!({"trace": trace, "device": {"name": "t4-16g"}});
        for (name, value) in rest.as_object().expect("an object") {
            answer[name] = value.clone();
        }
        answer
    }

    fn compared(before: &Value, after: &Value, data: &str) -> Comparison {
        let line = |rest: &Value| format!("{}\n", answer("a", rest));
        Comparison::of(&line(before), &line(after), &renamed(data)).expect("JSON")
    }

    fn found(before: &Value, after: &Value, data: &str) -> Vec<String> {
        let comparison = compared(before, after, data);
        let told = |d: &Difference| format!("{}: {} -> {}", d.path, d.before, d.after);
        comparison.differences.iter().map(told).collect()
    }

    #[test]
    fn the_same_answers_do_not_differ() {
        let value = json!({"peak": {"bytes": 5, "at": ["x", 0.5, null, true]}});
        let comparison = compared(&value, &value, "");
        assert_eq!((comparison.answers, comparison.identical), (1, 1));
        assert!(comparison.differences.is_empty());
    }

    #[test]
    fn every_number_and_text_that_differs_is_found() {
        let before =
            json!({"peak": {"bytes": 5, "share": 0.5}, "op": "a", "fits": true, "l": [1, 2]});
        let after =
            json!({"peak": {"bytes": 6, "share": 0.25}, "op": "b", "fits": null, "l": [1, 3]});
        assert_eq!(
            found(&before, &after, ""),
            [
                "peak.bytes: 5 -> 6",
                "peak.share: 0.5 -> 0.25",
                "op: \"a\" -> \"b\"",
                "fits: true -> null",
                "l[1]: 2 -> 3",
            ]
        );
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let comparison = compared(&json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1}), "");
        assert_eq!((comparison.answers, comparison.identical), (1, 0));
        assert!(comparison.differences.is_empty());
    }

    #[test]
    fn keys_that_come_and_go_are_found_unless_they_are_listed() {
        let [before, after] = [json!({"old": 1, "x": {}}), json!({"x": {"new": 2}})];
        assert_eq!(
            found(&before, &after, ""),
            ["old: 1 -> no such key", "x.new: no such key -> 2"]
        );
        assert_eq!(found(&before, &after, "removed = ['old']\nadded = ['x.new']"), [""; 0]);
    }

    #[test]
    fn renamed_keys_and_texts_are_compared_under_their_new_names() {
        let data = "[keys]\noutlook = 'confidence'\n[values.confidence]\nsure = 'high'";
        let before = json!({"outlook": "sure", "bytes": 1});
        assert_eq!(found(&before, &json!({"confidence": "high", "bytes": 1}), data), [""; 0]);
        assert_eq!(
            found(&before, &json!({"confidence": "low", "bytes": 2}), data),
            ["confidence: \"high\" -> \"low\"", "bytes: 1 -> 2"]
        );
    }

    #[test]
    fn wording_is_counted_and_a_missing_text_differs() {
        let [before, after] = [json!({"message": "it is none"}), json!({"message": "none"})];
        let comparison = compared(&before, &after, "wording = ['message']");
        assert_eq!((comparison.reworded, comparison.differences.len()), (1, 0));
        let after = json!({"message": null});
        assert_eq!(found(&before, &after, "wording = ['message']").len(), 1);
        assert_eq!(found(&before, &after, "ignored = ['message']"), [""; 0]);
    }

    #[test]
    fn a_longer_list_differs_once() {
        let [before, after] = [json!({"list": [1, 2]}), json!({"list": [1, 2, 3]})];
        assert_eq!(found(&before, &after, ""), ["list: 2 elements -> 3 elements"]);
    }

    #[test]
    fn elements_with_names_are_paired_by_them() {
        let data = "[lists]\nrules = 'rule'";
        let before = json!({"rules": [{"rule": "a", "n": 1}, {"rule": "b", "n": 2}]});
        let after = json!({"rules": [{"rule": "b", "n": 2}, {"rule": "a", "n": 1}]});
        assert_eq!(found(&before, &after, data), [""; 0]);
        let after = json!({"rules": [{"rule": "b", "n": 3}, {"rule": "c", "n": 1}]});
        assert_eq!(
            found(&before, &after, data),
            [
                "rules[a]: {\"rule\":\"a\",\"n\":1} -> no such element",
                "rules[b].n: 2 -> 3",
                "rules[c]: no such element -> {\"rule\":\"c\",\"n\":1}",
            ]
        );
    }

    #[test]
    fn elements_of_one_name_are_paired_by_position() {
        let data = "[lists]\nrules = 'rule'";
        let before = json!({"rules": [{"rule": "a", "n": 1}, {"rule": "a", "n": 2}]});
        let after = json!({"rules": [{"rule": "a", "n": 1}, {"rule": "a", "n": 3}]});
        assert_eq!(found(&before, &after, data), ["rules[1].n: 2 -> 3"]);
    }

    #[test]
    fn answers_of_one_side_are_found() {
        let line = |trace: &str| format!("{}\n", answer(trace, &json!({})));
        let comparison = Comparison::of(&line("a"), &line("b"), &renamed("")).expect("JSON");
        let traces: Vec<&str> =
            comparison.differences.iter().map(|d| d.subject.trace.as_str()).collect();
        assert_eq!((traces, comparison.answers), (vec!["a", "b"], 0));
    }
}
