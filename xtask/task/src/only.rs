//! The selection of cases by `--only`.

/// Returns whether a case is asked for: its name contains one of the texts, or there are none.
pub fn selects(only: &[String], name: &str) -> bool {
    only.is_empty() || contains_any(name, only)
}

/// Returns whether a name contains one of the texts.
pub fn contains_any(name: &str, texts: &[String]) -> bool {
    texts.iter().any(|text| name.contains(text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_selects_and_none_selects_all() {
        let only = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert!(selects(&only(&[]), "gan"));
        assert!(selects(&only(&["ddp_", "ga"]), "gan"));
        assert!(!selects(&only(&["ddp_"]), "gan"));
        assert!(!contains_any("gan", &only(&[])));
    }
}
