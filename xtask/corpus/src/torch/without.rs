//! Texts that must be neither in a trace nor in what xmem says about it.

use xmem_task::repo;

/// Stands for the name of this machine.
const HOST: &str = "{host}";

/// Shorter names are parts of other words.
const SHORTEST: usize = 6;

/// The complaints about texts that are there.
pub(super) fn complaints(unwanted: &[String], text: &str, place: &str) -> Vec<String> {
    let found = unwanted.iter().filter_map(|unwanted| {
        let unwanted = match unwanted.as_str() {
            HOST => repo::said("hostname", &[]),
            other => other.to_owned(),
        };
        (unwanted.len() >= SHORTEST && text.contains(&unwanted)).then_some(unwanted)
    });
    found.map(|unwanted| format!("`{unwanted}` is in {place}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_there_is_a_complaint() {
        let unwanted = ["secret-1".to_owned(), "secret-2".to_owned(), "the".to_owned()];
        let found = complaints(&unwanted, "the trace with secret-2", "the trace");
        assert_eq!(found, ["`secret-2` is in the trace"]);
    }
}
