//! Nouns of the field that several crates could claim: each names one public type of the workspace. Others qualify it
//! (`PlannedBlock`, `SimulationStep`).

use super::findings::Findings;

/// The nouns.
const NOUNS: [&str; 5] = ["Block", "Step", "Place", "Plan", "Recording"];

/// Checks that no two public types have one of these names.
pub(crate) fn check(sources: &[(String, String)], findings: &mut Findings) {
    for noun in NOUNS {
        let mut first: Option<String> = None;
        for (name, text) in sources.iter().filter(|(name, _)| is_source(name)) {
            for (number, line) in text.lines().enumerate().filter(|(_, line)| defines(line, noun)) {
                let place = format!("{name}:{}", number + 1);
                match &first {
                    None => first = Some(place),
                    Some(first) => {
                        let problem = format!("`{noun}` is the type at {first}: qualify the name");
                        findings.add(&place, format!("{problem} (`{}`)", line.trim()));
                    }
                }
            }
        }
    }
}

fn is_source(name: &str) -> bool {
    name.starts_with("crates/") && name.contains("/src/")
}

fn defines(line: &str, noun: &str) -> bool {
    let rest = line.trim_start().strip_prefix("pub ");
    let rest = rest.and_then(|rest| {
        ["struct ", "enum ", "type ", "trait "].iter().find_map(|kind| rest.strip_prefix(kind))
    });
    rest.and_then(|rest| rest.strip_prefix(noun))
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_of_the_field_names_one_public_type() {
        let found = |first: &str, second: &str| {
            let file =
                |name: &str, text: &str| (format!("crates/{name}/src/lib.rs"), text.to_owned());
            let mut findings = Findings::default();
            check(&[file("a", first), file("b", second)], &mut findings);
            findings.lines().len()
        };
        assert_eq!(found("pub struct Block {\n}", "pub struct Block<'a> {\n}"), 1);
        assert_eq!(found("pub struct Block {\n}", "pub enum Step {\n}"), 0);
        assert_eq!(
            found("pub struct Block {\n}", "pub struct BlockList;\npub(crate) struct Block;"),
            0
        );
    }
}
