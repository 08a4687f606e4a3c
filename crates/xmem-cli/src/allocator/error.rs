//! Allocator settings that cannot be simulated, with the position of the error.

use crate::error::{CliError, failures};
use miette::{Diagnostic, SourceSpan};
use thiserror::Error;
use xmem::predict::AllocatorError;
use xmem::simulator::ConfError;
use xmem::types::printable;

failures! {
    /// Allocator settings that cannot be simulated.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum AllocatorFailure {
        /// An error in the option string.
        #[error("{title}")]
        Option {
            title: String,
            #[help]
            help: &'static str,
            #[source_code]
            conf: String,
            #[label("{why}")]
            at: SourceSpan,
            why: String,
        } => Usage XM0121 {
            title: "invalid allocator option",
            cause:
                "`--alloc-conf`, or PYTORCH_CUDA_ALLOC_CONF of the recording, has an option or a value that this \
                 release of PyTorch rejects.",
            example: "xmem replay trace.json.zst --device t4-16g --alloc-conf max_split_size:32",
            fix:
                "Correct the marked part. If the option needs another release, give the release that will run on the \
                 GPU, for example `--torch 2.8`.",
        },
        /// Any other error.
        #[error(transparent)]
        Other(AllocatorError) => Usage XM0122 {
            title: "allocator settings that cannot be simulated",
            cause:
                "The settings contradict each other, or the release of PyTorch is older than those that xmem \
                 simulates.",
            example: "xmem replay trace.json.zst --device t4-16g --torch 1.9",
            fix:
                "Remove one of the contradicting settings, or choose a release with `--torch`; `xmem replay --help` \
                 lists the options of the allocator.",
        },
        #[error("no recorded addresses: the input is not a memory snapshot")]
        #[diagnostic(help(
            "`--address-order recorded` works only with `xmem snapshot replay`; use driver, asc or desc"
        ))]
        NothingRecorded => Usage XM0123 {
            title: "no recorded addresses",
            cause: "`--address-order recorded` repeats the addresses of a memory snapshot, and the input is not one.",
            example: "xmem replay trace.json.zst --device t4-16g --address-order recorded",
            fix:
                "Use `--address-order driver`, `asc` or `desc`, or replay a snapshot with `xmem snapshot replay \
                 snapshot.pickle`.",
        },
    }
}

impl AllocatorFailure {
    /// The error of one of several traces.
    pub(crate) fn with(trace: &str, error: AllocatorError) -> Self {
        match error.into() {
            Self::Option { title, help, conf, at, why } => {
                let title = format!("`{trace}`: {title}");
                Self::Option { title, help, conf, at, why }
            }
            other => other,
        }
    }
}

impl From<AllocatorError> for AllocatorFailure {
    fn from(error: AllocatorError) -> Self {
        match &error {
            AllocatorError::Conf { conf, source, .. } => Self::Option {
                title: printable(&error.to_string()).into_owned(),
                help: match source {
                    ConfError::NotYet { .. } | ConfError::NoLonger { .. } => {
                        "set the release that will run on the GPU with --torch"
                    }
                    _ => "the allocator page of the guide lists the options of each release",
                },
                at: place(&printable(conf), source),
                conf: printable(conf).into_owned(),
                why: source.to_string(),
            },
            _ => Self::Other(error),
        }
    }
}

impl From<AllocatorError> for CliError {
    fn from(error: AllocatorError) -> Self {
        AllocatorFailure::from(error).into()
    }
}

/// The invalid part of the option string, or all of it if the part is not known.
fn place(conf: &str, error: &ConfError) -> SourceSpan {
    let of_key = |key: &str| word(conf, key, 0);
    let behind_key = |key: &str, text: &str| {
        let key = of_key(key)?;
        word(conf, text, key.end).or(Some(key))
    };
    let range = match error {
        ConfError::UnknownKey { key, .. } => of_key(key),
        ConfError::NotYet { key, .. }
        | ConfError::NoLonger { key, .. }
        | ConfError::NoValue { key }
        | ConfError::NotSimulated { key, .. } => of_key(key),
        ConfError::BadValue { key, value, .. } => behind_key(key, value),
        ConfError::Expected { key, found, .. } => {
            behind_key(key, found.as_deref().unwrap_or_default())
        }
        ConfError::NotAnOption { found, .. } => word(conf, found, 0),
    };
    range.unwrap_or(0..conf.len()).into()
}

/// The first range of `text` after `from` that is `word`, and not part of another word.
fn word(text: &str, word: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let within_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text[from..].match_indices(word).map(|(at, _)| from + at..from + at + word.len()).find(|at| {
        let before = text[..at.start].chars().next_back().is_some_and(within_word);
        let after = text[at.end..].chars().next().is_some_and(within_word);
        !at.is_empty() && (!word.contains(within_word) || !(before || after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem::predict::{AllocatorSettings, JobEnvironment};
    use xmem::{Bytes, Device};

    /// Each row: options, and the part of them that the error points at.
    #[test]
    fn the_error_points_at_the_invalid_part() {
        for (conf, pointed_at) in [
            ("max_split_size:32", "max_split_size"),
            ("max_split_size_mb:64,max_split_size:32", "max_split_size"),
            ("expandable_segments=true", "expandable_segments=true"),
            ("max_split_size_mb:64,expandable_segments:true", "true"),
            ("max_split_size_mb:32,max_split_size_mb:3", "3"),
            ("expandable_segments", "expandable_segments"),
            ("expandable_segments:", "expandable_segments"),
            ("max_split_size_mb:64:65", ":"),
            ("pinned_max_cached_size_mb:64", "pinned_max_cached_size_mb"),
            ("expandable_segments:True;max_split_size_mb:64", "True;max_split_size_mb"),
        ] {
            let settings = AllocatorSettings { conf: Some(conf.to_owned()), ..Default::default() };
            let device = Device::custom(Bytes::gib(8));
            let error = settings.resolve(&JobEnvironment::default(), &device).expect_err(conf);
            let AllocatorFailure::Option { at, .. } = error.into() else { panic!("{conf}") };
            let range = at.offset()..at.offset() + at.len();
            assert_eq!(&conf[range], pointed_at, "{conf}");
        }
    }
}
