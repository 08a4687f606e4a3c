//! Words that do not belong into a published repository: one machine's paths and unfinished work.

use super::findings::Findings;

/// Spelled in two halves, so that this file does not find itself.
const FORBIDDEN: [(&str, &str); 8] = [
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/Us", "ers/"), "a path of one machine"),
    (concat!("../sha", "red"), "a path outside the repository"),
    (concat!("TO", "DO"), "unfinished: finish it or write an issue"),
    (concat!("FIX", "ME"), "unfinished: finish it or write an issue"),
    (concat!("to", "do!("), "unfinished: finish it or return an error"),
    (concat!("unimple", "mented!("), "unfinished: finish it or return an error"),
];

/// Extensions of files that people write.
const TEXT: [&str; 13] =
    ["rs", "md", "toml", "py", "sh", "yml", "yaml", "json", "txt", "html", "ts", "mjs", "css"];

/// Whether a file is text that people write.
pub(crate) fn is_searched(name: &str) -> bool {
    name == ".ci/run" || name.rsplit_once('.').is_some_and(|(_, end)| TEXT.contains(&end))
}

/// Reports each line that holds a forbidden word.
pub(crate) fn check(name: &str, text: &str, findings: &mut Findings) {
    for (number, line) in text.lines().enumerate() {
        for (word, why) in FORBIDDEN {
            if line.contains(word) {
                findings.add(&format!("{name}:{}", number + 1), format!("`{word}`: {why}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_word_is_found_with_its_line() {
        for (word, why) in FORBIDDEN {
            let mut findings = Findings::default();
            check("a.md", &format!("fine\nnot {word} fine\n"), &mut findings);
            assert!(findings.lines().contains(&format!("a.md:2: `{word}`: {why}").as_str()));
        }
        let mut findings = Findings::default();
        check("a.md", "frameworks/and network/paths are fine\n", &mut findings);
        assert_eq!(findings.lines(), [""; 0]);
    }

    #[test]
    fn text_is_searched_and_recordings_are_not() {
        assert!(is_searched("docs/style.md") && is_searched(".ci/run"));
        assert!(!is_searched("traces/a/trace.json.zst") && !is_searched("Cargo.lock"));
    }
}
