//! Arguments that name traces: folders, patterns, lists.

use crate::job::{self, Folder};
use crate::shell::{Ran, command, xmem_with_input};
use std::io::Write;
use std::process::Stdio;

/// A folder with traces at several depths, and what is none.
fn tree() -> Folder {
    let folder = Folder::empty();
    for name in ["b.json", "a.json.txt", "one/c.json", "one/deep/d.json", "two/e[1].json"] {
        folder.put(name, &job::trace());
    }
    folder.put("one/z.json.gz", &gzip(&job::trace()));
    folder.put("two/a.json.zst", &zstd::encode_all(&job::trace()[..], 1).expect("packed"));
    folder
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).and_then(|()| packed.finish()).expect("packed")
}

/// Runs the command in `folder`, one trace after the other.
fn replay(folder: &Folder, traces: &[&str]) -> Ran {
    let args = ["replay", "--capacity", "4GiB", "--format", "jsonl", "--jobs", "1"];
    let mut command = command(args.iter().chain(traces));
    command.current_dir(folder.path(".")).stdin(Stdio::null()).output().expect("runs").into()
}

fn names(ran: &Ran) -> Vec<String> {
    let name = |line: &serde_json::Value| line["trace"].as_str().expect("name").to_owned();
    ran.lines().iter().map(name).collect()
}

/// Each row: the arguments, and the traces in their order.
#[test]
fn folders_patterns_and_lists_stand_for_traces() {
    let folder = tree();
    folder.put("list", b"# to do\n\n  one/c.json  \r\nb.json\none/../b.json\n");
    folder.put("@odd*.json", &job::trace());
    let rows: [(&[&str], &[&str]); 11] = [
        (
            &["."],
            &[
                "./@odd*.json",
                "./b.json",
                "./one/c.json",
                "./one/deep/d.json",
                "./one/z.json.gz",
                "./two/a.json.zst",
                "./two/e[1].json",
            ],
        ),
        (&["one"], &["one/c.json", "one/deep/d.json", "one/z.json.gz"]),
        (&["two", "one/deep"], &["two/a.json.zst", "two/e[1].json", "one/deep/d.json"]),
        (&["*/?.json"], &["one/c.json"]),
        (&["one/**/*.json"], &["one/c.json", "one/deep/d.json"]),
        (&["**/[cd].json"], &["one/c.json", "one/deep/d.json"]),
        (&["*.txt"], &["a.json.txt"]),
        (&["two/e[1].json"], &["two/e[1].json"]),
        (&["@odd*.json"], &["@odd*.json"]),
        (&["@list"], &["one/c.json", "b.json"]),
        (
            &["b.json", "./b.json", "one/c.json", "one"],
            &["b.json", "one/c.json", "one/deep/d.json", "one/z.json.gz"],
        ),
    ];
    for (named, expected) in rows {
        let ran = replay(&folder, named);
        assert_eq!(names(&ran), expected, "{named:?}\n{}", ran.stderr);
        assert_eq!(ran.code, 0, "{named:?}");
    }
}

#[test]
fn a_list_may_come_from_standard_input() {
    let folder = tree();
    let list = format!("{}\n{}", folder.path("b.json"), folder.path("one/c.json"));
    let args = ["replay", "@-", "--capacity", "4GiB", "-f", "csv", "--jobs", "1"];
    let ran = xmem_with_input(args, list.as_bytes());
    assert_eq!(ran.stdout.lines().count(), 3, "{}", ran.stderr);
    assert_eq!(ran.code, 0);
}

#[test]
fn a_missing_file_of_a_list_is_one_bad_file() {
    let folder = tree();
    folder.put("list", b"b.json\nnothing.json\none/c.json\n");
    let ran = replay(&folder, &["@list"]);
    assert_eq!(names(&ran), ["b.json", "nothing.json", "one/c.json"]);
    let schemas: Vec<_> = ran.lines().iter().map(|line| line["schema"].clone()).collect();
    assert_eq!(schemas, ["xmem.replay/2", "xmem.error/1", "xmem.replay/2"]);
    assert!(ran.stderr.contains("note: 1 error among 3 traces"), "{}", ran.stderr);
    assert_eq!(ran.code, 3);
}

/// Each row: the arguments, the exit code, and the error.
#[test]
fn what_stands_for_nothing_is_an_error() {
    let folder = tree();
    folder.put("empty/readme", b"nothing here");
    folder.put("blank", b"# nothing\n\n");
    let rows: [(&[&str], i32, &str); 9] = [
        (&["empty"], 3, "no traces found in folder `empty`"),
        (&["b.json", "empty"], 3, "*.json.zst"),
        (&["x*.json"], 3, "no file matches `x*.json`"),
        (&["no/such/*.json"], 3, "no file matches"),
        (&["two/[.json"], 2, "is neither an existing file nor"),
        (&["@blank"], 3, "the list `@blank` contains no traces"),
        (&["@nothing"], 3, "cannot read the list of traces `nothing`"),
        (&["@-", "-"], 2, "only once"),
        (&["@-", "@-"], 2, "only once"),
    ];
    for (named, code, message) in rows {
        let ran = replay(&folder, named);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{named:?}");
        assert!(ran.stderr.contains(message), "{named:?}: {}", ran.stderr);
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_back_or_nowhere_do_no_harm() {
    use std::os::unix::fs::symlink;
    let folder = tree();
    let at = |name: &str| folder.path(name);
    symlink("../../one", at("one/deep/back")).expect("link");
    symlink("gone", at("one/latest")).expect("link");
    symlink("gone.json", at("one/late.json")).expect("link");
    symlink("c.json", at("one/same.json")).expect("link");
    symlink("self.json", at("one/self.json")).expect("link");
    symlink("itself", at("one/itself")).expect("link");
    for named in ["one", "one/**/*.json*"] {
        let ran = replay(&folder, &[named]);
        let expected =
            ["one/c.json", "one/deep/d.json", "one/late.json", "one/self.json", "one/z.json.gz"];
        assert_eq!(names(&ran), expected, "{named}");
        assert_eq!(ran.code, 3);
        assert!(ran.stderr.contains("one/late.json"), "{}", ran.stderr);
    }
}

#[test]
fn an_answer_in_the_folder_is_not_taken_for_a_trace() {
    let folder = tree();
    let run = || {
        let args = ["replay", "one", "--capacity", "4GiB", "-f", "json", "-o", "one/answers.json"];
        command(args).current_dir(folder.path(".")).output().expect("runs").status.code()
    };
    assert_eq!(run(), Some(0));
    let first = folder.read("one/answers.json");
    assert_eq!(run(), Some(0));
    assert_eq!(folder.read("one/answers.json"), first);
    let alone = ["replay", "two", "--capacity", "4GiB", "-f", "json", "-o", "two/answers.json"];
    for name in ["a.json.zst", "e[1].json"] {
        std::fs::rename(folder.path(&format!("two/{name}")), folder.path(name)).expect("moved");
    }
    folder.put("two/answers.json", first.as_bytes());
    let ran: Ran = command(alone).current_dir(folder.path(".")).output().expect("runs").into();
    assert!(ran.stderr.contains("no traces found in folder `two`"), "{}", ran.stderr);
    assert_eq!((ran.code, folder.read("two/answers.json")), (3, first));
}
