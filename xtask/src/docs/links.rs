//! Links of the built book: files that are not there, and parts of pages that nothing is called.

use crate::tidy::links::resolve;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The pages of a site by their paths in it, with their text.
pub(crate) type Pages = BTreeMap<PathBuf, String>;

/// Links of `pages` that lead nowhere, each with its page; `exists` tells which other files are there. Links to other sites
/// are not followed.
pub(crate) fn broken(pages: &Pages, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let parts: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path.as_path(), values(text, "id").collect())).collect();
    let mut found = BTreeSet::new();
    for (page, text) in pages {
        for link in values(text, "href").chain(values(text, "src")) {
            if !leads_somewhere(page, link, &parts, &exists) {
                found.insert(format!("{}: {link}", page.display()));
            }
        }
    }
    found.into_iter().collect()
}

fn leads_somewhere(
    page: &Path,
    link: &str,
    parts: &BTreeMap<&Path, BTreeSet<&str>>,
    exists: impl Fn(&Path) -> bool,
) -> bool {
    if link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:") {
        return true;
    }
    let (file, part) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let target = if file.is_empty() { Some(page.to_owned()) } else { resolve(&folder.join(file)) };
    let Some(target) = target else { return false };
    match parts.get(target.as_path()) {
        Some(known) => part.is_empty() || known.contains(part),
        None => exists(&target),
    }
}

/// The values of an attribute in a page.
fn values<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let before = format!(" {name}=\"");
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, behind) = rest.split_once(before.as_str())?;
        let (value, behind) = behind.split_once('"')?;
        rest = behind;
        Some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_and_their_parts_are_followed() {
        let page = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
        let pages = Pages::from([
            page(
                "a.html",
                "<h1 id=\"top\"></h1> <a href=\"guide/b.html#here\"></a> <a href=\"#top\"></a>",
            ),
            page(
                "guide/b.html",
                "<p id=\"here\"></p> <img src=\"../images/c.svg\"> <a href=\"../a.html#gone\"></a> \
                 <a href=\"missing.html\"></a> <a href=\"https://example.org/x\"></a>",
            ),
        ]);
        let broken = broken(&pages, |path| path == Path::new("images/c.svg"));
        assert_eq!(broken, ["guide/b.html: ../a.html#gone", "guide/b.html: missing.html"]);
    }
}
