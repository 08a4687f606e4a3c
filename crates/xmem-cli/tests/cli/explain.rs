//! Codes of errors: as errors show them, as documents have them, and as `xmem explain` and the page of errors explain them.

use crate::job::Folder;
use crate::shell::xmem;
use expect_test::expect_file;
use serde_json::Value;
use std::fmt::Write as _;
use xmem_cli::{Explanation, explanations};

const INTRODUCTION: &str = "\
# Errors

Each error of xmem has a code, which it shows in brackets. `xmem explain XM0101` prints the entry of a code in the terminal,
and `xmem explain` lists all codes. In `xmem.error/1`, the key `code` has it. A code keeps its meaning in later versions.

This page is made from the program: `UPDATE_EXPECT=1 cargo test -p xmem-cli --test cli explain` writes it anew.
";

#[test]
fn the_page_of_errors_follows_the_program() {
    let mut page = INTRODUCTION.to_owned();
    for Explanation { code, exit, title, cause, example, fix } in explanations() {
        let _ = write!(page, "\n## {code}: {title}\n\n{cause}\n\n```sh\n{example}\n```\n\n");
        let _ = write!(page, "{fix}\n\nExit code: {}\n", exit.code());
    }
    expect_file!["../../../../docs/reference/errors.md"].assert_eq(&page);
}

#[test]
fn each_code_is_explained_on_a_screen() {
    let list = xmem(["explain"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""));
    let all = explanations();
    assert_eq!(list.stdout.lines().count(), all.len());
    for (line, explanation) in list.stdout.lines().zip(all) {
        assert_eq!(line, format!("{}  {}", explanation.code, explanation.title));
    }
    let ran = xmem(["explain", "xm101"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in
        ["XM0101: no device given\n", "\nExample:\n  xmem ", "\nFix:\n  ", "\nExit code: 2\n"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(ran.stdout.lines().count() <= 24, "{}", ran.stdout);
}

#[test]
fn an_unknown_code_leads_to_near_ones() {
    let ran = xmem(["explain", "XM0106"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("[XM0003] unknown error code `XM0106`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean XM0105"), "{}", ran.stderr);
}

#[test]
fn errors_show_their_codes() {
    let folder = Folder::new();
    folder.put("empty.json", b"");
    let (job, empty) = (folder.path("job.json"), folder.path("empty.json"));
    for (args, code) in [
        (&["replay", &job][..], "[XM0101]"),
        (&["replay", &empty, "--capacity", "1GiB"], "[XM0211]"),
        (&["replay", &job, "--divice", "t4-16g"], "error[XM0001]: "),
    ] {
        let ran = xmem(args);
        assert!(ran.stderr.contains(code), "{code}: {}", ran.stderr);
    }
    let ran = xmem(["replay", &empty, "--capacity", "1GiB"]);
    assert!(ran.stderr.contains("`xmem explain XM0211`"), "{}", ran.stderr);
    let ran = xmem(["replay", &job, &empty, "--capacity", "1GiB", "--format", "json"]);
    let documents: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let errors: Vec<&Value> = (documents.as_array().expect("a list").iter())
        .filter(|document| document["schema"] == "xmem.error/1")
        .collect();
    assert_eq!(errors.len(), 1, "{documents}");
    assert_eq!(errors[0]["code"], "XM0211");
}
