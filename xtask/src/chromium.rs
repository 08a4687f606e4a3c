//! The browser that opens pages and files.

use std::path::PathBuf;

/// The reason to skip what needs it.
pub(crate) const MISSING: &str = "no Chromium: apt-get install chromium, or name one in CHROMIUM";

/// Returns the browser that `CHROMIUM` names, else the one that is installed, if it is there.
pub(crate) fn find() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").unwrap_or_else(|| "/usr/bin/chromium".into());
    Some(PathBuf::from(named)).filter(|path| path.exists())
}
