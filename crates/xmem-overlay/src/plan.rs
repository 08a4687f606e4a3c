//! What the process does that becomes the command: a file in the folder of an overlay.

use crate::coverage::Coverage;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The preparation of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preparation {
    /// A mount namespace; with one of users if that is allowed.
    Namespace { may_have_users: bool },
    /// The kernel refuses what the preloaded library does not see.
    Guard,
}

impl Preparation {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Namespace { may_have_users: false }, "namespace"),
        (Self::Namespace { may_have_users: true }, "namespace of users"),
        (Self::Guard, "guard"),
    ];
}

/// The text: fields that end with a zero byte, the preparation first, then pairs of a kind and a path.
pub(crate) fn written(preparation: Preparation, coverage: &Coverage) -> Vec<u8> {
    let name = Preparation::ALL.into_iter().find(|(other, _)| *other == preparation);
    let mut text = name.map_or_else(Vec::new, |(_, name)| name.into());
    text.push(0);
    for (kind, paths) in [(b'u', &coverage.uncovered), (b'c', &coverage.covered)] {
        for path in paths {
            text.extend([kind, 0]);
            text.extend(path.as_os_str().as_bytes());
            text.push(0);
        }
    }
    text
}

/// The plan of a text; none if its preparation is not known.
pub(crate) fn read(text: &[u8]) -> Option<(Preparation, Coverage)> {
    let mut coverage = Coverage::default();
    let mut fields = text.split(|&byte| byte == 0);
    let name = fields.next()?;
    let (preparation, _) =
        Preparation::ALL.into_iter().find(|(_, other)| other.as_bytes() == name)?;
    while let (Some(kind), Some(path)) = (fields.next(), fields.next()) {
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        match kind {
            b"u" => coverage.uncovered.insert(path),
            _ => coverage.covered.insert(path),
        };
    }
    Some((preparation, coverage))
}

/// The folder of the overlay with this plan.
pub(crate) fn folder_of(plan: &Path) -> &Path {
    plan.parent().unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let odd = PathBuf::from(OsString::from_vec(b"/home/\xff\n a".to_vec()));
        let coverage = Coverage::new(&["/tmp/a/b".into()], Path::new("/tmp"), &[odd], &[]);
        for (preparation, _) in Preparation::ALL {
            let text = written(preparation, &coverage);
            assert_eq!(read(&text), Some((preparation, coverage.clone())));
        }
        assert_eq!(read(b"other"), None);
    }
}
