//! `cargo xtask docs`: the API reference and the book, a site with a folder for each version.

pub(crate) mod external;
#[cfg(any(test, feature = "book"))]
mod links;

use crate::test::cargo_test;
use xmem_task::run::step;
use xmem_task::{Error, repo};

/// rustdoc as cargo calls it for the examples of a library, which writes the reference instead.
const RUSTDOC: &str = "xtask/src/docs/rustdoc.sh";

/// Both, with warnings denied.
pub(crate) fn run() -> Result<(), Error> {
    step("reference", reference)?;
    step("book", book)
}

/// The reference of the libraries, in the folder `doc` of the target folder.
fn reference() -> Result<(), Error> {
    let [rustdoc, out] = [repo::root().join(RUSTDOC), repo::target()?.join("doc")]
        .map(|path| path.to_string_lossy().into_owned());
    cargo_test(&["--quiet", "--doc"], &[("RUSTDOC", &rustdoc), ("RUSTDOC_OUT", &out)])
}

/// The book did not build.
#[cfg(feature = "book")]
#[derive(Debug, thiserror::Error)]
#[error("the book does not build: {message}")]
struct BookError {
    message: String,
}

#[cfg(feature = "book")]
impl xmem_task::TaskError for BookError {}

/// Links of the book lead nowhere.
#[cfg(feature = "book")]
#[derive(Debug, thiserror::Error)]
#[error("links of the book lead nowhere:\n{}", .0.join("\n"))]
struct LinksError(Vec<String>);

#[cfg(feature = "book")]
impl xmem_task::TaskError for LinksError {}

/// The page of `xmem estimate` in a site.
#[cfg(feature = "book")]
const ESTIMATE: &str = "estimate.html";

/// The book alone, into the folder `site/VERSION` of the target folder: those of earlier versions stay beside it, and
/// `site/index.html` leads to the one that was built last.
#[cfg(feature = "book")]
pub(crate) fn book() -> Result<(), Error> {
    use mdbook_driver::MDBook;

    let failed = |error: &dyn std::fmt::Debug| BookError { message: format!("{error:?}") };
    let version = env!("CARGO_PKG_VERSION");
    let site = repo::target()?.join("site");
    let folder = site.join(version);
    let mut book = MDBook::load(repo::root().join("docs")).map_err(|e| failed(&e))?;
    book.config.book.title = Some(format!("xmem {version}"));
    book.config.build.build_dir.clone_from(&folder);
    book.build().map_err(|e| failed(&e))?;
    let page = crate::web::estimate_page()?;
    if page.exists() {
        let beside = folder.join(ESTIMATE);
        std::fs::copy(&page, &beside).map_err(Error::file(&beside))?;
    } else {
        println!("without the page of `xmem estimate`: cargo xtask web-estimate builds it");
    }
    // The page of `xmem estimate` belongs to a site, also where it is not built.
    let exists = |path: &std::path::Path| path == ESTIMATE || folder.join(path).exists();
    let broken = links::broken(&pages(&folder)?, exists);
    if !broken.is_empty() {
        return Err(LinksError(broken).into());
    }
    let first = site.join("index.html");
    let leads_on =
        format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={version}/\">\n");
    std::fs::write(&first, leads_on).map_err(Error::file(&first))?;
    println!("{}", folder.join("index.html").display());
    Ok(())
}

/// The pages of a site.
#[cfg(feature = "book")]
fn pages(folder: &std::path::Path) -> Result<links::Pages, Error> {
    let mut found = links::Pages::new();
    for entry in walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok) {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "html") {
            let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
            let inside = path.strip_prefix(folder).unwrap_or(path).to_owned();
            found.insert(inside, text);
        }
    }
    Ok(found)
}

/// The book alone: needs this program built with the renderer.
#[cfg(not(feature = "book"))]
pub(crate) fn book() -> Result<(), Error> {
    crate::again::with("book", &["book"])
}
