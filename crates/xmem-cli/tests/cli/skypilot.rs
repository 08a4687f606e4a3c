//! `xmem check --format skypilot`.

use crate::job::Folder;
use crate::recorded;
use crate::shell::{Ran, xmem};

fn check(args: &[&str]) -> Ran {
    let trace = recorded::trace("vgg11_adagrad");
    xmem([&["check", "--no-config", "--no-cache", &trace], args].concat())
}

fn skypilot(args: &[&str]) -> Ran {
    check(&[&["--format", "skypilot"], args].concat())
}

/// The GPUs of a task and how many of each.
fn accelerators(ran: &Ran) -> Vec<(String, u64)> {
    let values = xmem_gate::Manifest::parse(&ran.stdout).expect("YAML").values();
    let found = values.first().and_then(|value| value["resources"]["accelerators"].as_object());
    let number = |count: &serde_json::Value| count.as_u64().expect("a number");
    found.into_iter().flatten().map(|(name, count)| (name.clone(), number(count))).collect()
}

#[test]
fn the_gpus_of_a_task_are_those_on_which_the_job_fits() {
    let ran = skypilot(&["--margin", "83%"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let found = accelerators(&ran);
    for gpu in xmem_gate::accelerators() {
        let fits = |device: &str| {
            let answer = check(&["--device", device, "--margin", "83%", "--format", "json"]).json();
            answer["decision"] == "fits"
        };
        let expected = gpu.devices.iter().all(|device| fits(&device.name));
        let listed = found.contains(&(gpu.name.to_owned(), 1));
        assert_eq!(listed, expected, "{}: {}", gpu.name, ran.stdout);
    }
    let has = |name: &str| found.iter().any(|(known, _)| known == name);
    assert!(has("A100") && !has("T4"), "{}", ran.stdout);
}

#[test]
fn a_trace_of_each_rank_asks_for_as_many_gpus() {
    let trace = recorded::trace("vgg11_adagrad");
    let folder = Folder::empty();
    for rank in ["rank0.json.zst", "rank1.json.zst"] {
        folder.put(rank, &std::fs::read(&trace).expect("read"));
    }
    let ran = xmem(["check", "--no-config", &folder.path("."), "--format", "skypilot"]);
    let found = accelerators(&ran);
    assert!(!found.is_empty() && found.iter().all(|(_, count)| *count == 2), "{}", ran.stdout);
}

#[test]
fn only_the_device_that_is_named_counts_and_none_is_no_resource() {
    let one = skypilot(&["--device", "t4-16g"]);
    assert_eq!(accelerators(&one), [("T4".to_owned(), 1)], "{}", one.stdout);
    let none = skypilot(&["--device", "t4-16g", "--margin", "95%"]);
    assert_eq!((none.code, accelerators(&none).len()), (1, 0), "{}", none.stdout);
    assert!(none.stdout.contains("# TIGHT"), "{}", none.stdout);
    let unknown = skypilot(&["--device", "jetson-orin-64g"]);
    assert_eq!(unknown.code, 2, "{}{}", unknown.stdout, unknown.stderr);
    assert!(
        unknown.stderr.contains("SkyPilot has no name for jetson-orin-64g"),
        "{}",
        unknown.stderr
    );
}
