//! The explanations of all errors. Each is declared beside its error.

use crate::error::{Explanation, USAGE};
use crate::exit::Exit;
use crate::{
    allocator, commands, config, cudnn, device, estimate, guard, input, objects, operations,
};
use crate::{output, overwrite, reading, traces, what_if};

/// The explanations of errors without a type of this crate.
const OF_OTHERS: &[Explanation] = &[Explanation {
    code: USAGE,
    exit: Exit::Usage,
    title: "invalid command line",
    cause: "The command line has an unknown command or option, lacks an argument, or has an invalid value.",
    example: "xmem replay trace.json.zst --divice t4-16g",
    fix: "Correct the argument that the message names. `xmem COMMAND --help` lists all options of a command.",
}];

/// The explanations of all errors, in the order of their codes.
pub(crate) fn explanations() -> Vec<&'static Explanation> {
    let shared = [
        OF_OTHERS,
        guard::EXPLAINED,
        device::DeviceFailure::EXPLAINED,
        config::ConfigFailure::EXPLAINED,
        allocator::AllocatorFailure::EXPLAINED,
        what_if::WhatIfFailure::EXPLAINED,
        cudnn::CudnnFailure::EXPLAINED,
        input::InputFailure::EXPLAINED,
        reading::ReadingFailure::EXPLAINED,
        traces::TracesFailure::EXPLAINED,
        objects::ObjectsFailure::EXPLAINED,
        operations::OperationsFailure::EXPLAINED,
        output::OutputFailure::EXPLAINED,
        overwrite::OverwriteFailure::EXPLAINED,
        estimate::EstimateFailure::EXPLAINED,
    ];
    let mut all: Vec<&Explanation> =
        shared.into_iter().chain(commands::EXPLAINED).flatten().collect();
    all.sort_by_key(|explanation| explanation.code);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The codes in a text: `XM` and four digits.
    fn codes(text: &str) -> BTreeSet<String> {
        let behind = text.match_indices("XM").filter_map(|(at, _)| text.get(at..at + 6));
        let is_code = |code: &&str| code[2..].chars().all(|c| c.is_ascii_digit());
        behind.filter(is_code).map(str::to_owned).collect()
    }

    /// The codes in the sources of a folder.
    fn codes_in(folder: &Path) -> BTreeSet<String> {
        let entries =
            walkdir::WalkDir::new(folder).into_iter().map(|entry| entry.expect("readable"));
        let files = entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "rs"));
        files.flat_map(|file| codes(&std::fs::read_to_string(file.path()).expect("text"))).collect()
    }

    #[test]
    fn each_code_has_one_explanation() {
        let all = explanations();
        let explained: BTreeSet<String> = all.iter().map(|e| e.code.to_owned()).collect();
        assert_eq!(explained.len(), all.len(), "a code has two explanations");
        let used = codes_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let missing: Vec<&String> = used.difference(&explained).collect();
        assert_eq!(missing, [""; 0], "codes without an explanation");
    }

    #[test]
    fn explanations_are_complete() {
        for Explanation { code, title, cause, example, fix, .. } in explanations() {
            assert_eq!(codes(code).len(), 1, "{code}");
            assert!(!title.is_empty() && !title.ends_with('.'), "{code}: {title}");
            for text in [cause, fix] {
                let begins = ["xmem ", "torch."].iter().any(|name| text.starts_with(name))
                    || !text.starts_with(|c: char| c.is_ascii_lowercase());
                let is_sentence = begins && text.ends_with('.');
                assert!(is_sentence && !text.contains("  "), "{code}: {text}");
            }
            assert!(example.contains("xmem "), "{code}: {example}");
            assert!(fix.contains('`'), "{code} names no command or option: {fix}");
        }
    }

    /// The arguments of the commands of the program in an example or a fix.
    fn commands_of(text: &str) -> Vec<Vec<String>> {
        let is_command = |text: &&str| text.contains("xmem ") && !text.contains('…');
        let quoted = text.split('`').skip(1).step_by(2).filter(is_command);
        let whole = (!text.contains('`')).then_some(text);
        let args = |text: &str| {
            let (_, args) = text.split_once("xmem ").expect("a command");
            let args = args.split(['>', '|']).next().unwrap_or_default();
            std::iter::once("xmem".to_owned()).chain(shlex::split(args).expect("words")).collect()
        };
        quoted.chain(whole).map(args).collect()
    }

    #[test]
    fn examples_and_fixes_are_commands_of_the_program() {
        use clap::error::ErrorKind::{InvalidSubcommand, UnknownArgument};
        for Explanation { code, example, fix, .. } in explanations() {
            for args in [example, fix].into_iter().flat_map(|text| commands_of(text)) {
                let parsed = crate::command().try_get_matches_from(&args);
                let kind = parsed.err().map(|error| error.kind());
                let is_unknown = matches!(kind, Some(InvalidSubcommand | UnknownArgument));
                let is_placeholder = args.iter().any(|arg| arg == "COMMAND" || arg == "--divice");
                assert!(!is_unknown || is_placeholder, "{code}: {args:?}");
            }
        }
    }
}
