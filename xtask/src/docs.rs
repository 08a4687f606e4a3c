//! `cargo xtask docs`: the API reference and the book, a site with a folder for each version.

#[cfg(any(test, feature = "book"))]
mod links;

use crate::test::FEATURES;
use xmem_task::Error;
use xmem_task::run::{cargo_with, step};

/// Both, with warnings denied.
pub(crate) fn run() -> Result<(), Error> {
    // Libraries only: the program and the façade are both called `xmem`. With the features of the lints, what the libraries
    // depend on has been checked already.
    let arguments = ["doc", "--workspace", "--lib", "--no-deps", "--locked", FEATURES];
    step("reference", || cargo_with(&arguments, &[("RUSTDOCFLAGS", "-D warnings")]))?;
    step("book", book)
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
    let site = xmem_task::repo::target()?.join("site");
    let folder = site.join(version);
    let mut book = MDBook::load(xmem_task::repo::root().join("docs")).map_err(|e| failed(&e))?;
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
