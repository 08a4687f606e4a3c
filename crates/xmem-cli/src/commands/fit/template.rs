//! The command with a number that may be changed: `{batch=8}` in one of its words, or several of the same name.

use super::error::FitFailure;
use crate::shell::quoted;
use std::ffi::OsString;
use std::num::NonZeroU32;

/// A command with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    words: Vec<Word>,
    /// The name of the placeholders, if there are any.
    pub(super) name: Option<String>,
    /// The value in the job as it is, if one of them says so.
    pub(super) value: Option<u64>,
    /// The measure that sets the value, where the command has no option for it.
    pub(super) measure: Option<&'static str>,
    /// The number of processes, if it is a distributed job; none of them if it is what is varied.
    pub(super) ranks: Option<Ranks>,
}

/// The number of processes of a distributed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranks {
    /// As many.
    Of(NonZeroU32),
    /// The number that is varied.
    Varied,
}

/// What `--set` can vary, and the measure that does it.
const SETTINGS: [(&str, &str); 1] = [("dataloader.batch_size", "batch-size")];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Fixed(OsString),
    /// Text around placeholders.
    Varied(Vec<String>),
}

impl Template {
    /// Reads the words of a command.
    pub(super) fn parse(words: &[OsString]) -> Result<Self, FitFailure> {
        let mut template =
            Self { words: Vec::new(), name: None, value: None, measure: None, ranks: None };
        for word in words {
            let parts = word.to_str().map(|text| template.parts(text)).transpose()?;
            template.words.push(match parts {
                Some(parts) if parts.len() > 1 => Word::Varied(parts),
                _ => Word::Fixed(word.clone()),
            });
        }
        Ok(template)
    }

    /// Adds what `--set` says.
    pub(super) fn set(&mut self, text: &str) -> Result<(), FitFailure> {
        let unknown = || FitFailure::Setting { given: text.to_owned() };
        let (key, number) = text.split_once('=').ok_or_else(unknown)?;
        let found = SETTINGS.iter().find(|(name, _)| *name == key.trim()).ok_or_else(unknown)?;
        let (name, value, length) = placeholder(number.trim()).ok_or_else(unknown)?;
        if length != number.trim().len() {
            return Err(unknown());
        }
        if self.name.is_some() {
            return Err(FitFailure::SetAndNumber);
        }
        self.note(name, value)?;
        self.measure = Some(found.1);
        Ok(())
    }

    /// Adds what `--ranks` says: a number, or the one that is varied.
    pub(super) fn set_ranks(&mut self, text: &str) -> Result<(), FitFailure> {
        let text = text.trim();
        if let Ok(ranks) = text.parse() {
            self.ranks = Some(Ranks::Of(ranks));
            return Ok(());
        }
        let unknown = || FitFailure::Ranks { given: text.to_owned() };
        let (name, value, length) = placeholder(text).ok_or_else(unknown)?;
        if length != text.len() {
            return Err(unknown());
        }
        self.note(name, value)?;
        self.ranks = Some(Ranks::Varied);
        Ok(())
    }

    /// The number of processes with a value of the number.
    pub(super) fn ranks_with(&self, value: Option<u64>) -> Option<NonZeroU32> {
        match self.ranks? {
            Ranks::Of(ranks) => Some(ranks),
            Ranks::Varied => NonZeroU32::new(u32::try_from(value?).ok()?),
        }
    }

    /// The measure that sets a value, as on the command line.
    pub(super) fn setting(&self, value: Option<u64>) -> Option<String> {
        Some(format!("{}={}", self.measure?, value?))
    }

    /// The text around the placeholders of a word.
    fn parts(&mut self, text: &str) -> Result<Vec<String>, FitFailure> {
        let mut parts = vec![String::new()];
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            let last = parts.last_mut().expect("never empty");
            last.push_str(before);
            match placeholder(from) {
                Some((name, value, length)) => {
                    self.note(name, value)?;
                    parts.push(String::new());
                    rest = &from[length..];
                }
                None => {
                    last.push('{');
                    rest = &from[1..];
                }
            }
        }
        parts.last_mut().expect("never empty").push_str(rest);
        Ok(parts)
    }

    fn note(&mut self, name: &str, value: Option<u64>) -> Result<(), FitFailure> {
        if let Some(known) = self.name.as_deref().filter(|known| *known != name) {
            return Err(FitFailure::TwoNumbers { one: known.to_owned(), other: name.to_owned() });
        }
        self.name = Some(name.to_owned());
        match (self.value, value) {
            (Some(one), Some(other)) if one != other => {
                Err(FitFailure::TwoValues { name: name.to_owned(), one, other })
            }
            _ => {
                self.value = self.value.or(value);
                Ok(())
            }
        }
    }

    /// The command with a value.
    pub(super) fn with(&self, value: Option<u64>) -> Vec<OsString> {
        let value = value.map_or_else(String::new, |value| value.to_string());
        let filled = |word: &Word| match word {
            Word::Fixed(word) => word.clone(),
            Word::Varied(parts) => parts.join(&value).into(),
        };
        self.words.iter().map(filled).collect()
    }

    /// The command with a value, in the words of a shell.
    pub(super) fn words(&self, value: Option<u64>) -> String {
        let words = self.with(value);
        let words: Vec<_> =
            words.iter().map(|word| plain_or_quoted(&word.to_string_lossy())).collect();
        words.join(" ")
    }
}

/// A word as a shell takes it, without quotes where it needs none.
fn plain_or_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    quoted(word)
}

/// The name, the value and the length of a placeholder at the beginning of a text; none if there is none, as in `{"a": 1}`.
fn placeholder(text: &str) -> Option<(&str, Option<u64>, usize)> {
    let end = text.find('}')?;
    let inside = text[..end].strip_prefix('{')?;
    let (name, value) = match inside.split_once('=') {
        Some((name, value)) => (name, Some(value.parse::<u64>().ok().filter(|value| *value > 0)?)),
        None => (inside, None),
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    is_name.then_some((name, value, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Template, FitFailure> {
        Template::parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn placeholders_are_filled_in() {
        let template =
            parsed(&["python", "t.py", "--batch={batch=8}", "-x", "a{batch}b"]).expect("one");
        assert_eq!((template.name.as_deref(), template.value), (Some("batch"), Some(8)));
        assert_eq!(template.words(Some(16)), "python t.py --batch=16 -x a16b");
    }

    #[test]
    fn braces_of_other_kinds_are_left_alone() {
        for word in ["{}", "{\"lr\": 1}", "{1}", "{a b}", "${HOME}x{", "{batch=x}", "{batch=0}"] {
            let template = parsed(&["python", word]).expect(word);
            if word != "${HOME}x{" {
                assert_eq!(template.name, None, "{word}");
                assert_eq!(template.with(None)[1], word);
            }
        }
    }

    #[test]
    fn a_setting_is_varied_by_a_measure() {
        let mut template = parsed(&["python", "t.py"]).expect("a command");
        template.set("dataloader.batch_size={batch=8}").expect("a setting");
        assert_eq!((template.name.as_deref(), template.value), (Some("batch"), Some(8)));
        assert_eq!(template.setting(Some(16)).as_deref(), Some("batch-size=16"));
        assert_eq!(template.words(Some(16)), "python t.py");
        for text in [
            "dataloader.batch_size",
            "lr={a}",
            "dataloader.batch_size=8",
            "dataloader.batch_size={b}x",
        ] {
            parsed(&["python"]).expect("a command").set(text).expect_err(text);
        }
        parsed(&["{batch=8}"])
            .expect("a number")
            .set("dataloader.batch_size={b}")
            .expect_err("two");
    }

    #[test]
    fn the_number_of_processes_may_be_the_one_that_is_varied() {
        let mut template =
            parsed(&["torchrun", "--nproc-per-node={n}", "t.py"]).expect("a command");
        template.set_ranks("{n=4}").expect("the same number");
        assert_eq!((template.name.as_deref(), template.value), (Some("n"), Some(4)));
        assert_eq!(template.ranks_with(Some(8)).map(NonZeroU32::get), Some(8));
        let mut fixed = parsed(&["torchrun", "t.py", "{batch=2}"]).expect("a command");
        fixed.set_ranks("8").expect("a number");
        assert_eq!(fixed.ranks_with(Some(2)).map(NonZeroU32::get), Some(8));
        fixed.set_ranks("{n}").expect_err("two numbers");
        parsed(&["x"]).expect("a command").set_ranks("0").expect_err("none");
        assert_eq!(parsed(&["x"]).expect("a command").ranks_with(Some(2)), None);
    }

    #[test]
    fn one_number_is_varied() {
        parsed(&["{batch=8}", "{seq=9}"]).expect_err("two names");
        parsed(&["{batch=8}", "{batch=9}"]).expect_err("two values");
    }
}
