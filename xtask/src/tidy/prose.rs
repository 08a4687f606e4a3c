//! The language of the documentation: phrases to avoid, the length of sentences and of pages.
//!
//! Words are counted outside of code; a token without a letter (a figure) is no word. Cells of tables are searched for
//! phrases, but have no sentences.

use super::SUMMARY;
use super::findings::Findings;

/// The most words of a sentence.
const MAX_SENTENCE: usize = 35;

/// The most words of a page.
const MAX_PAGE: usize = 1_500;

/// Pages that are written by a program: their phrases come from its texts, and their length from their number.
const GENERATED: [&str; 4] = [
    "docs/rules.md",
    "docs/reference/options.md",
    "docs/reference/errors.md",
    "docs/reference/python.md",
];

/// Pages of measured tables, which may be long.
const RESULTS: &str = "docs/results/";

/// Phrases that do not read well, and what to write.
const PHRASES: [(&str, &str); 23] = [
    ("told", "say what the data contain"),
    ("is said", "name who or what says it"),
    ("are said", "name who or what says it"),
    ("has none", "has no …, or without"),
    ("have none", "have no …, or without"),
    ("is at hand", "is available"),
    ("are at hand", "are available"),
    ("was at hand", "was available"),
    ("were at hand", "were available"),
    ("can be had", "is available"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("by chance", "at random"),
    ("all the same", "still"),
    ("of its own", "separate, or its own …"),
    ("of their own", "separate, or their own …"),
    ("is news to", "does not know"),
    ("somebody", "name who"),
    ("no word for", "does not know"),
    ("next to no", "almost no"),
    ("not without", "with"),
    ("not uncommon", "common"),
    ("not impossible", "possible"),
];

/// Whether a file is a page whose language is checked.
pub(crate) fn is_checked(name: &str) -> bool {
    let is_page = name == "README.md" || (name.starts_with("docs/") && name.ends_with(".md"));
    is_page && name != SUMMARY
}

/// Reports phrases to avoid, sentences and pages that are too long.
pub(crate) fn check(name: &str, text: &str, findings: &mut Findings) {
    let is_generated = GENERATED.contains(&name);
    let mut page = 0;
    for part in parts(text) {
        let place = format!("{name}:{}", part.line);
        let plain = plain(&part.text);
        page += words(&plain);
        let lower = plain.to_lowercase();
        for (phrase, instead) in PHRASES {
            if has_phrase(&lower, phrase) {
                findings.add(&place, format!("`{phrase}`: {instead}"));
            }
        }
        if part.kind == Kind::Prose && !is_generated {
            for sentence in sentences(&plain) {
                let (count, start) = (words(sentence), beginning(sentence));
                if count > MAX_SENTENCE {
                    let finding =
                        format!("`{start} …` has {count} words, more than {MAX_SENTENCE}");
                    findings.add(&place, finding);
                }
            }
        }
    }
    if page > MAX_PAGE && !is_generated && !name.starts_with(RESULTS) {
        findings.add(name, format!("{page} words, more than {MAX_PAGE}: divide the page"));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A paragraph, or an item of a list.
    Prose,
    /// A heading, or a row of a table.
    Other,
}

/// A paragraph, an item of a list, a heading or a row of a table, with the number of its first line.
struct Part {
    line: usize,
    kind: Kind,
    text: String,
}

/// The parts of a page outside of code and comments.
fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut in_code, mut continues) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), number + 1);
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        if is_fence || in_code || line.is_empty() || line.starts_with("<!--") {
            continues = false;
        } else if line.starts_with(['#', '|']) {
            parts.push(Part { line: number, kind: Kind::Other, text: line.to_owned() });
            continues = false;
        } else if let (true, None, Some(part)) = (continues, item(line), parts.last_mut()) {
            part.text.push(' ');
            part.text.push_str(line);
        } else {
            let text = item(line).unwrap_or(line).to_owned();
            parts.push(Part { line: number, kind: Kind::Prose, text });
            continues = true;
        }
    }
    parts
}

/// The text of a list's item behind its marker.
fn item(line: &str) -> Option<&str> {
    let behind_digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = behind_digits.strip_prefix(". ").filter(|_| behind_digits != line);
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered)
}

/// The text without markup: code, the targets of links and tags are one letter each.
fn plain(text: &str) -> String {
    let text = without(text, "`", "`", "X");
    let text = without(&text, "](", ")", "");
    let text = without(&text, "<", ">", "X");
    text.replace(['*', '[', '!'], "")
}

/// The text with everything from `open` to `close` replaced.
fn without(text: &str, open: &str, close: &str, instead: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, behind)) = rest.split_once(open) {
        let Some((_, after)) = behind.split_once(close) else { break };
        out.push_str(before);
        out.push_str(instead);
        rest = after;
    }
    out + rest
}

/// The sentences of a paragraph: each ends with a period or a question mark before a space.
fn sentences(plain: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in plain.match_indices(['.', '?']) {
        let end = at + 1;
        let behind = plain[end..].trim_start_matches([')', '"', '”']);
        if behind.is_empty() || behind.starts_with(' ') {
            sentences.push(&plain[start..end]);
            start = end;
        }
    }
    sentences.push(&plain[start..]);
    sentences
}

/// The number of words: tokens with a letter.
fn words(text: &str) -> usize {
    text.split_whitespace().filter(|token| token.contains(char::is_alphabetic)).count()
}

/// The first words of a sentence.
fn beginning(sentence: &str) -> String {
    sentence.split_whitespace().take(6).collect::<Vec<_>>().join(" ")
}

/// Whether the text, in lower case, has the phrase as whole words.
fn has_phrase(lower: &str, phrase: &str) -> bool {
    lower.match_indices(phrase).any(|(at, _)| {
        let before = lower[..at].chars().next_back();
        let behind = lower[at + phrase.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !behind.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(name, text, &mut findings);
        findings.lines().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn phrases_are_found_in_text_and_tables_and_not_in_code() {
        let text =
            "# A\n\nThe job\ngoes\non.\n\n| a | of its own |\n\n`goes on`\n\n```\ngoes on\n```\n";
        assert_eq!(
            found("docs/a.md", text),
            [
                "docs/a.md:3: `goes on`: continues",
                "docs/a.md:7: `of its own`: separate, or its own …"
            ]
        );
        assert_eq!(found("docs/a.md", "It untold cargo ongoing.\n"), [""; 0]);
    }

    #[test]
    fn long_sentences_are_found_and_figures_do_not_count() {
        let long = |count: usize| format!("Long {}.\n", "word ".repeat(count - 1).trim());
        assert_eq!(found("docs/a.md", &long(35)), [""; 0]);
        assert_eq!(
            found("docs/a.md", &long(36)),
            ["docs/a.md:1: `Long word word word word word …` has 36 words, more than 35"]
        );
        for short in [
            format!("- {}\n- {}", long(20).trim(), long(20)),
            format!("{} {}", long(20).trim(), long(20)),
            format!("| {} |\n", long(40).trim()),
            format!("a {}.\n", "12 ".repeat(40).trim()),
            format!("a `{}` b.\n", "x ".repeat(40)),
            format!("[a b]({}).\n", "x/".repeat(40)),
        ] {
            assert_eq!(found("docs/a.md", &short), [""; 0], "{short}");
        }
    }

    #[test]
    fn a_page_is_short_unless_it_has_results() {
        let page = "A word.\n\n".repeat(751);
        let finding = "docs/a.md: 1502 words, more than 1500: divide the page";
        assert_eq!(found("docs/a.md", &page), [finding]);
        assert_eq!(found("docs/results/a.md", &page), [""; 0]);
    }

    #[test]
    fn pages_are_checked_and_of_generated_ones_the_phrases() {
        assert!(is_checked("README.md") && is_checked("docs/start/install.md"));
        for name in [SUMMARY, "CHANGELOG.md", "crates/xmem/README.md"] {
            assert!(!is_checked(name), "{name}");
        }
        for name in GENERATED {
            assert!(is_checked(name), "{name}");
            assert_eq!(found(name, &"A word ".repeat(751)), [""; 0]);
            assert_eq!(found(name, "It goes on.\n"), [format!("{name}:1: `goes on`: continues")]);
        }
    }

    #[test]
    fn sentences_end_at_a_period_before_a_space() {
        let text = "One 2.5 of a.b. Two (three.) Four?";
        let found: Vec<&str> = sentences(text).into_iter().map(str::trim).collect();
        assert_eq!(found, ["One 2.5 of a.b.", "Two (three.", ") Four?", ""]);
    }
}
