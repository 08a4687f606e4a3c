//! `cargo xtask docs`: the API reference and the book.

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

/// The book alone, into the folder `book` of the target folder.
#[cfg(feature = "book")]
pub(crate) fn book() -> Result<(), Error> {
    use mdbook_driver::MDBook;

    let failed = |error: &dyn std::fmt::Debug| BookError { message: format!("{error:?}") };
    let mut book = MDBook::load(xmem_task::repo::root().join("docs")).map_err(|e| failed(&e))?;
    book.config.build.build_dir = xmem_task::repo::target()?.join("book");
    book.build().map_err(|e| failed(&e))?;
    let page = crate::web::estimate_page()?;
    if page.exists() {
        let beside = book.config.build.build_dir.join("estimate.html");
        std::fs::copy(&page, &beside).map_err(Error::file(&beside))?;
    } else {
        println!("without the page of `xmem estimate`: cargo xtask web-estimate builds it");
    }
    println!("{}", book.config.build.build_dir.join("index.html").display());
    Ok(())
}

/// The book alone: needs this program built with the renderer.
#[cfg(not(feature = "book"))]
pub(crate) fn book() -> Result<(), Error> {
    crate::again::with("book", &["book"])
}
