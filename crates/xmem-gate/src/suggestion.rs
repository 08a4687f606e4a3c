//! The key that was perhaps meant.

/// Adds to the message of a TOML error about an unknown key or value the known one that is nearest, if one
/// is near.
#[must_use]
pub fn with_suggestion(message: &str) -> String {
    match nearest(message) {
        Some(known) => format!("{message}: did you mean `{known}`?"),
        None => message.to_owned(),
    }
}

/// Serde's messages name the unknown key first and then the known ones, each in backticks
/// (serde_core, de/mod.rs, `unknown_field` and `unknown_variant`).
fn nearest(message: &str) -> Option<&str> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    names
        .map(|known| (strsim::jaro_winkler(unknown, known), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_known_key_is_suggested() {
        for (message, shown) in [
            (
                "unknown field `polcy`, expected one of `policy`, `margin`",
                "unknown field `polcy`, expected one of `policy`, `margin`: did you mean `policy`?",
            ),
            (
                "unknown field `zebra`, expected `policy`",
                "unknown field `zebra`, expected `policy`",
            ),
            ("missing field `polcy`", "missing field `polcy`"),
        ] {
            assert_eq!(with_suggestion(message), shown);
        }
    }
}
