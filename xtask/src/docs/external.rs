//! `cargo xtask links`: whether the links of all documents to other sites lead somewhere.

use crate::tidy::links::targets;
use std::collections::BTreeMap;
use std::process::Command;
use xmem_task::{Error, TaskError, parallel, repo};

/// Requests at once.
const AT_ONCE: usize = 8;

/// Seconds until a site that does not answer is given up.
const SECONDS: &str = "30";

/// Part of an address that readers fill in.
const PLACEHOLDER: &str = "/OWNER/";

/// Some links lead nowhere; each was printed.
#[derive(Debug, thiserror::Error)]
#[error("links: {count} of {all} lead nowhere, see above")]
struct DeadLinks {
    count: usize,
    all: usize,
}

impl TaskError for DeadLinks {}

/// What a site says about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Page,
    /// It does not answer programs, or not so often.
    Refused,
    Nothing,
    /// Without a connection.
    Unreachable,
}

/// Follows each address once, and prints those that lead nowhere with their documents.
pub(crate) fn run() -> Result<(), Error> {
    let mut documents = Vec::new();
    for path in repo::files()? {
        if path.extension().is_some_and(|ending| ending == "md") {
            documents.push((path.display().to_string(), repo::text(&path)?));
        }
    }
    let all: Vec<(String, Vec<String>)> = addresses(&documents).into_iter().collect();
    let found = parallel::map(&all, AT_ONCE, |(address, _)| follow(address));
    let found = found.into_iter().collect::<Result<Vec<Found>, Error>>()?;
    if found.iter().all(|found| *found == Found::Unreachable) {
        return Err(Error::Skipped { reason: "no site can be reached" });
    }
    let mut count = 0;
    for ((address, documents), found) in all.iter().zip(found) {
        let what = match found {
            Found::Page => continue,
            Found::Refused => "not checked, the site refuses",
            Found::Nothing | Found::Unreachable => {
                count += 1;
                "leads nowhere"
            }
        };
        println!("{address}: {what} ({})", documents.join(", "));
    }
    println!("{} addresses", all.len());
    if count == 0 { Ok(()) } else { Err(DeadLinks { count, all: all.len() }.into()) }
}

/// The addresses of other sites with the documents that link to them; a part of a page counts as the page.
fn addresses(documents: &[(String, String)]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, text) in documents {
        let outside = targets(text).filter(|target| target.starts_with("http"));
        for target in outside.filter(|target| !target.contains(PLACEHOLDER)) {
            let page = target.split('#').next().unwrap_or(target);
            let names = found.entry(page.to_owned()).or_default();
            if names.last() != Some(name) {
                names.push(name.clone());
            }
        }
    }
    found
}

fn follow(address: &str) -> Result<Found, Error> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--location", "--retry", "2", "--max-time", SECONDS]);
    command.args(["--output", "/dev/null", "--write-out", "%{http_code}", address]);
    let output = command.output().map_err(Error::start("curl"))?;
    Ok(meaning(&String::from_utf8_lossy(&output.stdout)))
}

/// The meaning of an HTTP status as curl writes it; 000 without a connection.
fn meaning(status: &str) -> Found {
    match status.trim().parse().unwrap_or(0) {
        0 => Found::Unreachable,
        200..=399 => Found::Page,
        401 | 403 | 429 | 503 => Found::Refused,
        _ => Found::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_followed_once() {
        let page = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let documents = [
            page("a.md", "[x](https://x.example/1#part) [y](b.md) [z](https://x.example/1)"),
            page("b.md", "[x](https://x.example/1) [own](https://github.com/OWNER/xmem)"),
        ];
        let expected =
            [("https://x.example/1".to_owned(), vec!["a.md".to_owned(), "b.md".to_owned()])];
        assert_eq!(addresses(&documents), BTreeMap::from(expected));
    }

    #[test]
    fn a_site_that_refuses_programs_is_no_dead_link() {
        let all = ["200", "301", "403", "404", "410", "500", "000", ""].map(meaning);
        use Found::{Nothing, Page, Refused, Unreachable};
        assert_eq!(all, [Page, Page, Refused, Nothing, Nothing, Nothing, Unreachable, Unreachable]);
    }
}
