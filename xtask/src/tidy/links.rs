//! Links between the documents, and the book's table of contents.

use super::SUMMARY;
use super::findings::Findings;
use std::path::{Component, Path, PathBuf};

/// The folder of the book.
const BOOK: &str = "docs";

/// Reports relative links of a Markdown file that lead nowhere, also once the book is rendered: its
/// pages cannot link to files outside of it.
pub(crate) fn check(
    name: &str,
    text: &str,
    exists: impl Fn(&Path) -> bool,
    findings: &mut Findings,
) {
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    for target in targets(text) {
        if target.starts_with('#') || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let file = target.split('#').next().unwrap_or_default();
        match resolve(&folder.join(file)).filter(|path| exists(path)) {
            None => findings.add(name, format!("the link to `{target}` leads nowhere")),
            Some(path) if Path::new(name).starts_with(BOOK) && !path.starts_with(BOOK) => {
                findings.add(name, format!("the link to `{target}` leaves the book"));
            }
            Some(_) => {}
        }
    }
}

/// Reports pages of the book that its table of contents lacks.
pub(crate) fn check_summary(
    summary: &str,
    documents: &[(String, String)],
    findings: &mut Findings,
) {
    let listed: Vec<String> = targets(summary).map(|target| format!("docs/{target}")).collect();
    for (name, _) in documents {
        if name.starts_with("docs/") && name != SUMMARY && !listed.contains(name) {
            findings.add(SUMMARY, format!("`{name}` is not in the table of contents"));
        }
    }
}

/// The targets of `[text](target)` links outside code blocks.
pub(crate) fn targets(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines()
        .filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            in_code ^= fence;
            !fence && !in_code
        })
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
}

/// The path without `..`; none if it leaves the folder in which it begins.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if clean.pop() => {}
            Component::ParentDir => return None,
            Component::Normal(part) => clean.push(part),
            _ => {}
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        let exists = |path: &Path| path == Path::new("docs/a.md") || path == Path::new("README.md");
        check(name, text, exists, &mut findings);
        findings.lines().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn links_are_followed_from_where_the_document_is() {
        let text = "[a](a.md#part) [w](https://example.org) [h](#here)\n\
                    ```\n[x](in-code.md)\n```\n";
        assert_eq!(found("docs/b.md", text), [""; 0]);
        assert_eq!(
            found("docs/b.md", "[a](b/a.md) and [out](../../x.md) [r](../README.md)"),
            [
                "docs/b.md: the link to `b/a.md` leads nowhere",
                "docs/b.md: the link to `../../x.md` leads nowhere",
                "docs/b.md: the link to `../README.md` leaves the book"
            ]
        );
        assert_eq!(found("c.md", "[r](README.md) [a](docs/a.md)"), [""; 0]);
    }

    #[test]
    fn every_page_is_in_the_table_of_contents() {
        let page = |name: &str| (name.to_owned(), String::new());
        let documents =
            [page("docs/SUMMARY.md"), page("docs/a.md"), page("docs/b.md"), page("c.md")];
        let mut findings = Findings::default();
        check_summary("- [A](a.md)\n", &documents, &mut findings);
        assert_eq!(
            findings.lines(),
            ["docs/SUMMARY.md: `docs/b.md` is not in the table of contents"]
        );
    }
}
