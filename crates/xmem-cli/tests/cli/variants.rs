//! One trace on several devices and with several settings of the allocator.

use crate::job::Folder;
use crate::recorded;
use crate::shell::{Ran, command, xmem};
use expect_test::expect;
use serde_json::Value;

#[test]
fn each_of_several_settings_gets_the_answer_that_it_gets_alone() {
    let traces = ["mlp_adam", "resnet18_sgdm"].map(recorded::trace);
    let devices = ["a100-40g", "t4-16g", "h100-80g"];
    let confs = ["", "expandable_segments:True"];
    let args = ["replay", &traces[0], &traces[1], "-f", "jsonl", "-j", "1", "--devices"];
    let devices_word = devices.join(",");
    let args = args.into_iter().chain([devices_word.as_str(), "--torch=2.6", "--torch=2.11"]);
    let together = xmem(args.chain(confs.iter().flat_map(|conf| ["--alloc-conf", *conf]))).lines();
    let mut alone = Vec::new();
    for trace in &traces {
        for device in devices {
            for torch in ["2.6", "2.11"] {
                for conf in confs {
                    let args = ["replay", trace, "-f", "json", "-d", device, "--torch", torch];
                    alone.push(xmem(args.into_iter().chain(["--alloc-conf", conf])).json());
                }
            }
        }
    }
    assert_eq!(together.len(), 24);
    assert_eq!(together, alone);
}

#[test]
fn the_trace_is_read_once() {
    let trace = recorded::trace("mlp_adam");
    let args = ["replay", &trace, "--devices", "a100-40g,t4-16g,l4-24g", "-f", "jsonl"];
    let output = command(args).env("XMEM_LOG", "xmem=debug").output().expect("runs");
    let log = String::from_utf8(output.stderr).expect("UTF-8");
    let stages = ["reading", "analyzing", "replaying"].map(|stage| log.matches(stage).count());
    assert_eq!((stages[1], stages[2]), (1, 3), "{log}");
}

#[test]
fn which_of_these_will_do() {
    let folder = Folder::new();
    let mut ran = command([
        "replay",
        "job.json",
        "--devices",
        "t4-16g,a100-40g-mig-1g.5gb",
        "--alloc-conf",
        "",
        "--alloc-conf",
        "expandable_segments:True",
    ]);
    let ran: Ran = ran.current_dir(folder.path(".")).output().expect("runs").into();
    expect![[r#"
        page:
          job.json

          device                  memory  allocator                 verdict   reserved  nvidia-smi   headroom
          t4-16g               14.58 GiB  no options                FITS     84.00 MiB  274.00 MiB  14.31 GiB
          t4-16g               14.58 GiB  expandable_segments:True  FITS     80.00 MiB  270.00 MiB  14.32 GiB
          a100-40g-mig-1g.5gb   4.75 GiB  no options                FITS     84.00 MiB  384.00 MiB   4.38 GiB
          a100-40g-mig-1g.5gb   4.75 GiB  expandable_segments:True  FITS     80.00 MiB  380.00 MiB   4.38 GiB

          allocator: PyTorch 2.11
    "#]].assert_eq(&format!("page:\n{}", ran.stdout));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn allocators_are_described_by_their_differences() {
    let folder = Folder::new();
    let words = ["--torch=2.6", "--allocator=native", "--allocator=uncached", "--allocator=tf-bfc"];
    let args = ["replay", "job.json", "--device", "t4-16g"].into_iter().chain(words);
    let ran: Ran = command(args).current_dir(folder.path(".")).output().expect("runs").into();
    expect![[r#"
        page:
          job.json

          allocator                    verdict   reserved  nvidia-smi   headroom
          PyTorch 2.6                  FITS     84.00 MiB  274.00 MiB  14.31 GiB
          PyTorch 2.6 without caching  FITS     80.00 MiB  270.00 MiB  14.32 GiB
          TensorFlow's BFC allocator   FITS     13.37 GiB   13.55 GiB   1.03 GiB
    "#]]
    .assert_eq(&format!("page:\n{}", ran.stdout));
}

#[test]
fn several_traces_on_several_devices_have_a_row_each() {
    let folder = Folder::new();
    let mut ran = command(["replay", "job.json", "bad.json", "--devices", "t4-16g,a100-40g"]);
    let ran: Ran = ran.current_dir(folder.path(".")).output().expect("runs").into();
    expect![[r#"
        page:
          trace     device       memory  verdict      reserved  nvidia-smi   headroom
          job.json  t4-16g    14.58 GiB  FITS        84.00 MiB  274.00 MiB  14.31 GiB
          job.json  a100-40g  39.49 GiB  FITS        84.00 MiB  534.00 MiB  38.97 GiB
          bad.json                       UNREADABLE
    "#]]
    .assert_eq(&format!("page:\n{}", ran.stdout));
    assert_eq!(ran.code, 3);
}

#[test]
fn a_device_that_is_named_twice_is_replayed_once() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let list = xmem(["replay", &job, "--devices", "t4-16g, T4-16G,a100-40g", "-f", "json"]).json();
    let names: Vec<&Value> =
        list.as_array().expect("list").iter().map(|answer| &answer["device"]["name"]).collect();
    assert_eq!(names, ["t4-16g", "a100-40g"]);
}

#[test]
fn settings_that_do_not_go_with_a_trace_fail_alone() {
    let folder = Folder::new();
    let said = br#"{"torch_version": "2.6.0", "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
         "args": {"Bytes": 83886080, "Addr": 64, "Device Type": 0, "Device Id": -1}}]}"#;
    folder.put("said.json", said);
    let said = folder.path("said.json");
    let args = ["replay", &said, "-d", "t4-16g", "-f", "jsonl", "--alloc-conf", ""];
    let ran = xmem(args.into_iter().chain(["--alloc-conf", "large_segment_size_mb:40"]));
    let [good, bad] = &ran.lines()[..] else { panic!("{}", ran.stdout) };
    assert_eq!(good["verdict"], "fits");
    assert_eq!(bad["schema"], "xmem.error/1");
    let settings = bad["settings"].as_str().expect("settings");
    assert!(settings.contains("large_segment_size_mb:40"), "{settings}");
    assert_eq!(ran.code, 2);
    let args = ["replay", &said, "-d", "t4-16g", "-f", "jsonl"];
    let alone = xmem(args.into_iter().chain(["--alloc-conf", "large_segment_size_mb:40"]));
    assert_eq!(&alone.lines()[..], std::slice::from_ref(bad));
}

/// Each row: options that exclude each other, and the error.
#[test]
fn several_devices_are_instead_of_one() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let rows: [(&[&str], &str); 5] = [
        (&["--devices", "t4-16g", "--device", "t4-16g"], "cannot be used with"),
        (&["--devices", "t4-16g", "--capacity", "8GiB"], "cannot be used with"),
        (&["--devices", "t4-16g", "--device-file", "x.toml"], "cannot be used with"),
        (&["--devices", "t4-16g,t4-61g"], "unknown device `t4-61g`"),
        (&["--devices", "t4-16g,l4-24g", "--snapshot", "s"], "2 settings were given"),
    ];
    for (words, message) in rows {
        let ran = xmem(["replay", job.as_str()].iter().chain(words));
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{words:?}");
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    }
}
