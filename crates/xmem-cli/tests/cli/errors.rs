//! Errors and their messages.

use crate::job::Folder;
use crate::shell::xmem;

/// Each row: arguments, exit code, texts that standard error must contain.
#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    folder.put("empty.json", b"");
    folder.put("device.toml", b"[[device]]\nname = 'x'\n");
    folder.put("said.json", br#"{"torch_version": "2.6.0", "traceEvents": []}"#);
    let path = |name: &str| folder.path(name);
    let said = path("said.json");
    let (job, missing, here) = (job.as_str(), path("nothing.json"), path("."));
    let (bad, empty, toml) = (path("bad.json"), path("empty.json"), path("device.toml"));
    let cases: [(&[&str], i32, &[&str]); 23] = [
        (&["replay", job], 2, &["no device given", "--capacity 24GiB", "xmem devices"]),
        (&["replay", job, "-d", "rtx3060-12x"], 2, &["did you mean `rtx3060-12g`"]),
        (&["replay", job, "-d", "abacus"], 2, &["unknown device `abacus`", "--device-file"]),
        (&["replay", job, "--capacity", "huge"], 2, &["not a size", "24GiB"]),
        (&["replay", job, "--capacity", "1GiB", "--iterations", "0"], 2, &["1..3"]),
        (&["replay", job, "--capacity", "1GiB", "--iterations", "5"], 2, &["the trace has 2"]),
        (
            &["replay", job, "--capacity", "1GiB", "--no-rule", "zz"],
            2,
            &["unknown rule `zz`", "leaf-scratch"],
        ),
        (&["replay", job, "--capacity", "1GiB", "--torch", "new"], 2, &["not a PyTorch version"]),
        (&["replay", "-", "-", "--capacity", "1GiB"], 2, &["only once"]),
        (&["replay", job, "--capacity", "1GiB", "--torch", "1.9"], 2, &["oldest known", "1.13"]),
        (
            &["replay", job, "--capacity", "1GiB", "--alloc-conf", "max_split_size:32"],
            2,
            &["did you mean `max_split_size_mb`?"],
        ),
        (
            &["replay", job, "--capacity", "1GiB", "--alloc-conf", "expandable_segments=true"],
            2,
            &["write `expandable_segments:VALUE`, with a colon"],
        ),
        (
            &["replay", &said, "--capacity", "1GiB", "--alloc-conf", "large_segment_size_mb:40"],
            2,
            &[
                "needs PyTorch 2.11 or later",
                "the release stated by the input",
                "--torch",
                "said.json",
            ],
        ),
        (
            &["replay", job, "--capacity", "1GiB", "--allocator", "jemalloc"],
            2,
            &["possible values", "cudaMallocAsync"],
        ),
        (
            &["replay", job, "--capacity", "1GiB", "--memory-fraction", "180%"],
            2,
            &["from 0 to 1, for example 0.8"],
        ),
        (
            &["replay", job, "--capacity", "1GiB", "--address-order", "recorded"],
            2,
            &["no recorded addresses", "snapshot replay", "driver, asc or desc"],
        ),
        (&["replay", job, "--device-file", &missing], 2, &["cannot read the device file"]),
        (&["replay", job, "--device-file", &toml], 2, &["invalid device file"]),
        (&["replay", &missing, "--capacity", "1GiB"], 3, &["does not exist"]),
        (&["inspect", &here], 3, &["is a directory"]),
        (&["replay", &bad, "--capacity", "1GiB"], 3, &["not a profiler trace"]),
        (&["inspect", &empty], 3, &["is empty"]),
        (&["frobnicate"], 2, &["unrecognized subcommand"]),
    ];
    for (args, code, message) in cases {
        let ran = xmem(args);
        // miette breaks lines and draws a bar before the rest.
        let words: Vec<&str> =
            ran.stderr.split_whitespace().filter(|w| !["│", "|"].contains(w)).collect();
        let flat = words.join(" ");
        assert_eq!(ran.code, code, "{args:?}: {flat}");
        assert_eq!(ran.stdout, "", "{args:?}");
        for text in message {
            assert!(flat.contains(text), "{args:?}: `{text}` is not in: {flat}");
        }
        assert!(!ran.stderr.contains('\u{1b}'), "{args:?}: color without a terminal");
    }
}

#[test]
fn a_command_without_arguments_helps() {
    for args in [&["profile"] as &[&str], &["replay"], &["inspect"], &["completions"]] {
        let ran = xmem(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains("Usage:"), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("Examples:"), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn the_program_alone_names_the_first_commands() {
    let ran = xmem(&[] as &[&str]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    let commands: Vec<&str> = ran
        .stderr
        .lines()
        .filter_map(|line| line.split_once("  xmem "))
        .map(|(_, rest)| rest)
        .collect();
    assert_eq!(commands.len(), 5, "{}", ran.stderr);
    for command in commands {
        let words = ["xmem"].into_iter().chain(command.split(' '));
        xmem_cli::command()
            .try_get_matches_from(words)
            .unwrap_or_else(|e| panic!("{command}: {e}"));
    }
}

#[test]
fn help_goes_to_standard_output_and_has_examples() {
    for args in [
        &["--help"] as &[&str],
        &["profile", "--help"],
        &["replay", "--help"],
        &["inspect", "--help"],
        &["devices", "--help"],
    ] {
        let ran = xmem(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        assert!(ran.stdout.contains("Examples:"), "{args:?}");
        assert!(ran.stdout.lines().all(|l| l.chars().count() <= 100), "{args:?}");
    }
}

/// Lines ended within long paths, behind a slash or wherever they were full, so that no path could be copied.
#[test]
fn paths_in_errors_are_whole() {
    let long =
        format!("/nowhere/{}/{}-trace.json", "a-folder/of-a-user".repeat(4), "long".repeat(30));
    let ran = xmem(["replay", &long, "--device", "t4-16g"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains(&format!("`{long}`")), "{}", ran.stderr);
}
