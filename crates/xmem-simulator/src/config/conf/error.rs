//! Errors in an option string.

use std::fmt;
use xmem_types::TorchVersion;

/// An option string that a release would refuse, or that uses what is not simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfError {
    /// No release knows the option.
    UnknownKey {
        /// As written.
        key: String,
        /// The name that was probably meant.
        nearest: Option<&'static str>,
        /// The release that was asked.
        release: TorchVersion,
    },
    /// The option came later.
    NotYet {
        /// The option.
        key: &'static str,
        /// The release that brought it.
        since: TorchVersion,
        /// The release that was asked.
        release: TorchVersion,
    },
    /// The option is gone.
    NoLonger {
        /// The option.
        key: &'static str,
        /// The last release that had it.
        last: TorchVersion,
        /// The release that was asked.
        release: TorchVersion,
    },
    /// The value is none of those that the option takes.
    BadValue {
        /// The option.
        key: &'static str,
        /// As written.
        value: String,
        /// The values that it takes.
        expected: String,
    },
    /// The value is missing.
    NoValue {
        /// The option.
        key: &'static str,
    },
    /// A mark is missing.
    Expected {
        /// The option.
        key: &'static str,
        /// The mark.
        mark: &'static str,
        /// The text in its place.
        found: Option<String>,
    },
    /// Something that is not separated by a comma from what comes before.
    NotAnOption {
        /// The text in its place.
        found: String,
        /// The whole string.
        text: String,
    },
    /// PyTorch accepts it, but the simulator does not have it.
    NotSimulated {
        /// The option.
        key: &'static str,
        /// The reason.
        why: &'static str,
    },
}

impl fmt::Display for ConfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { key, nearest, release } => {
                write!(f, "PyTorch {release} has no allocator option `{key}`")?;
                match nearest {
                    Some(nearest) if key.contains('=') => {
                        write!(f, ": write `{nearest}:VALUE`, with a colon")
                    }
                    Some(nearest) => write!(f, ": did you mean `{nearest}`?"),
                    None => Ok(()),
                }
            }
            Self::NotYet { key, since, release } => {
                write!(f, "`{key}` needs PyTorch {since} or later, but the release is {release}")
            }
            Self::NoLonger { key, last, release } => {
                write!(f, "`{key}` was removed after PyTorch {last}, but the release is {release}")
            }
            Self::BadValue { key, value, expected } => {
                write!(f, "`{key}` takes {expected}, not `{value}`")
            }
            Self::NoValue { key } => write!(f, "`{key}` has no value: write `{key}:VALUE`"),
            Self::Expected { key, mark, found: Some(found) } => {
                write!(f, "`{key}` needs a `{mark}` where `{found}` stands")
            }
            Self::Expected { key, mark, found: None } => {
                write!(f, "`{key}` needs a `{mark}`, but the options end there")
            }
            Self::NotAnOption { found, text } => {
                write!(f, "options are separated by commas: `{found}` in `{text}` is not")
            }
            Self::NotSimulated { key, why } => {
                write!(f, "`{key}` is not simulated: {why}")
            }
        }
    }
}

impl std::error::Error for ConfError {}
