//! Outputs and lists that could destroy or reveal a file.

use crate::job::{self, Folder};
use crate::shell::{command, xmem};
use std::process::Stdio;

#[cfg(unix)]
#[test]
fn an_output_that_names_an_input_is_refused_before_any_work() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.put("ops.json", b"[{\"op\": \"alloc\", \"id\": 1, \"size\": 512}]");
    folder.put("list.txt", folder.path("job.json").as_bytes());
    let path = |name: &str| folder.path(name);
    for (name, of) in [("job", "job.json"), ("ops", "ops.json")] {
        symlink(path(of), path(&format!("{name}.link"))).expect("linked");
        std::fs::hard_link(path(of), path(&format!("{name}.hard"))).expect("linked");
    }
    let (job, ops, dotted) = (path("job.json"), path("ops.json"), path("./sub/../job.json"));
    std::fs::create_dir(path("sub")).expect("made");
    let listed = format!("@{}", path("list.txt"));
    let replay = |trace: &str, rest: &[&str]| {
        let args = ["replay", trace, "--capacity", "1GiB"];
        args.iter().chain(rest).map(ToString::to_string).collect::<Vec<String>>()
    };
    let before = folder.read("job.json");
    for args in [
        replay(&job, &["-o", &job]),
        replay(&job, &["-o", &dotted]),
        replay(&job, &["-o", &path("job.link")]),
        replay(&job, &["-o", &path("job.hard")]),
        replay(&path("job.hard"), &["-o", &path("job.link"), "-f", "csv"]),
        replay(&job, &["-o", &job, "-f", "jsonl", "--skip-done"]),
        replay(&job, &["--snapshot", &path("job.hard")]),
        replay(&job, &["--snapshot", &path("new"), "-o", &path("sub/../new")]),
        replay(&listed, &["-o", &path("list.txt")]),
        replay(&listed, &["-o", &job]),
        replay(&path("."), &["-o", &job, "-f", "jsonl"]),
        vec!["simulate".into(), ops.clone(), "-o".into(), ops.clone()],
        vec![
            "simulate".into(),
            ops.clone(),
            "-o".into(),
            path("ops.hard"),
            "-f".into(),
            "json".into(),
        ],
    ] {
        let ran = xmem(&args);
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("would replace"), "{}", ran.stderr);
    }
    let input = std::fs::File::open(&job).expect("there");
    let piped = command(["replay", "-", "--capacity", "1GiB", "-o", &job])
        .stdin(Stdio::from(input))
        .output();
    assert_eq!(piped.expect("runs").status.code(), Some(2));
    assert_eq!(folder.read("job.json"), before);
    assert!(folder.read("ops.json").starts_with("[{\"op\""));
}

#[test]
fn an_earlier_answer_in_a_folder_of_traces_is_still_replaced() {
    let folder = Folder::empty();
    folder.put("job.json", &job::trace());
    for format in ["json", "jsonl"] {
        let answers = folder.path("answers.json");
        for _ in 0..2 {
            let ran = xmem([
                "replay",
                &folder.path("."),
                "--capacity",
                "1GiB",
                "-f",
                format,
                "-o",
                &answers,
            ]);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        }
    }
}

#[test]
fn nothing_of_a_file_that_is_not_a_list_is_shown() {
    let folder = Folder::new();
    let secret = "root:$6$c2VjcmV0$aGFzaA:19000:0:99999:7:::";
    folder.put("shadow", format!("# users\n{secret}\nuser:!:19000::::::\n").as_bytes());
    folder.put("mixed", format!("{}\n{secret}\n", folder.path("job.json")).as_bytes());
    let device = folder.path("shadow");
    for name in ["shadow", "mixed"] {
        let list = format!("@{}", folder.path(name));
        for format in ["text", "json", "csv"] {
            let ran = xmem(["replay", &list, "--capacity", "1GiB", "-f", format, "-vv"]);
            assert_eq!(ran.code, 3, "{}", ran.stderr);
            assert!(ran.stderr.contains("line 2 of the list"), "{}", ran.stderr);
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("root:"), "{}", ran.stderr);
        }
    }
    let ran = xmem(["replay", &folder.path("job.json"), "--device-file", &device]);
    assert!(ran.code == 2 && !ran.stderr.contains("root:"), "{}", ran.stderr);
}

#[test]
fn literal_paths_are_files_whatever_they_look_like() {
    let folder = Folder::empty();
    for name in ["@list.json", "-", "a*.json"] {
        folder.put(name, &job::trace());
        let args = ["replay", "--literal-paths", "--capacity", "1GiB", "-q", "--", name];
        let ran = command(args)
            .current_dir(folder.path("."))
            .stdin(Stdio::null())
            .output()
            .expect("runs");
        assert_eq!(ran.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    for name in ["@/etc/passwd", "*", "."] {
        let args = ["replay", "--literal-paths", "--capacity", "1GiB", "--", name];
        let ran = command(args)
            .current_dir(folder.path("."))
            .stdin(Stdio::null())
            .output()
            .expect("runs");
        assert_eq!(ran.status.code(), Some(3), "{name}");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!said.contains("root"), "{said}");
    }
}
