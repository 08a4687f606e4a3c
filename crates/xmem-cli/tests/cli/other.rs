//! The other commands.

use crate::job::Folder;
use crate::profile::flat;
use crate::schema_check::check;
use crate::shell::{Ran, command, xmem};
use expect_test::expect;
use std::process::Command;

const INSPECT: &str = include_str!("../../../../docs/schema/xmem.inspect.2.schema.json");
const DEVICES: &str = include_str!("../../../../docs/schema/xmem.devices.1.schema.json");

fn valid(schema: &str, ran: &Ran) {
    check(&serde_json::from_str(schema).expect("schema"), &ran.json()).expect("valid");
}

#[test]
fn inspect_shows_what_is_there_and_what_is_missing() {
    let folder = Folder::new();
    let ran = xmem(["inspect", &folder.path("job.json")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let (_, rest) = ran.stdout.split_once('\n').expect("the name comes first");
    expect![[r#"
          schema version      1
          profiler options    profile_memory, record_shapes, with_stack
          events              37
          operators           17 (17 with shapes)
          annotations         6
          Python calls        5
          host memory         9
          backward links      0
          threads             1
          module paths        1
          optimizers          SGD
          host blocks         5 (1 never freed)
          host memory peak    80.00 MiB
          recorded on         the CPU

        Iterations
          #  CPU time  host blocks  total allocated
          0    0.3 ms            2        72.00 MiB
          1    0.3 ms            2        72.00 MiB

        Notes
          note     memory is still allocated at the end of the trace
    "#]]
    .assert_eq(rest);
}

#[test]
fn inspect_as_json_follows_its_schema() {
    let folder = Folder::new();
    for name in ["job.json", "silent.json"] {
        valid(INSPECT, &xmem(["inspect", &folder.path(name), "--format", "json"]));
    }
}

#[test]
fn devices_are_listed() {
    for (args, slices) in [(&[][..], false), (&["--mig"], true)] {
        let names = xmem::devices::devices().iter().filter(|device| device.is_slice() == slices);
        let names: Vec<&str> = names.map(|device| device.name.as_str()).collect();
        let text = xmem(["devices"].iter().chain(args));
        assert_eq!(text.code, 0);
        let rows = || text.stdout.lines().filter_map(|line| line.split_whitespace().next());
        for name in &names {
            assert!(rows().any(|row| row == *name), "{name}");
        }
        let json = xmem(["devices", "--format", "json"].iter().chain(args));
        valid(DEVICES, &json);
        let json = json.json();
        let listed = json["devices"].as_array().expect("a list");
        let listed: Vec<&str> = listed.iter().filter_map(|d| d["name"].as_str()).collect();
        assert_eq!(listed, names);
    }
}

#[test]
fn slices_no_longer_fill_the_list_of_devices() {
    let whole = xmem(["devices"]);
    assert!(!whole.stdout.contains("-mig-"), "{}", whole.stdout);
    assert!(whole.stdout.contains("`xmem devices --mig` lists MIG slices"), "{}", whole.stdout);
    assert!(whole.stdout.contains("Orin (shared memory)"), "{}", whole.stdout);
}

#[test]
fn devices_are_listed_by_the_names_that_people_type() {
    let ran = xmem(["devices", "a100", "a100-40g", "RTX 4090"]);
    let names: Vec<&str> =
        ran.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names[..4], ["a100-40g", "a100-80g", "a100-pcie-80g", "rtx4090-24g"]);
    let slice = xmem(["devices", "a100-40g-mig-1g.5gb", "--format", "json"]).json();
    assert_eq!(slice["devices"][0]["name"], "a100-40g-mig-1g.5gb");
    let message = flat(&xmem(["devices", "4091"]));
    assert!(message.contains("unknown device `4091`"), "{message}");
}

/// The message of a command that must be a usage error.
fn refused(command: &mut Command) -> String {
    let ran: Ran = command.output().expect("runs").into();
    let message = flat(&ran);
    assert_eq!(ran.code, 2, "{message}");
    message
}

/// `4070` suggested `rtx4060-8g`, and `a100` was silently the one with 40 GB.
#[test]
fn a_model_is_found_or_asked_back_wherever_a_device_is_named() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    folder.put("site.toml", b"[[gpu]]\ndevice = \"a100\"\n");
    folder.put("work/xmem.toml", b"device = \"a100\"\n");
    let site = folder.path("site.toml");
    let ran = xmem(["replay", &job, "-d", "RTX 4070", "-f", "json"]);
    assert_eq!(ran.json()["device"]["name"], "rtx4070-12g");
    let several =
        "`a100` is several devices: a100-40g (40 GiB), a100-80g (80 GiB), a100-pcie-80g (80 GiB)";
    for args in [
        &["replay", &job, "-d", "a100"][..],
        &["replay", &job, "--devices", "t4,a100"],
        &["check", &job, "-d", "a100"],
        &["report", &job, "-d", "a100", "-o", "-"],
        &["plan", &job, "-d", "a100"],
        &["offload", &job, "-d", "a100"],
        &["diff", &job, &job, "-d", "a100"],
        &["profile", "-d", "a100", "--", "python3", "train.py"],
        &["profile", "--virtual-gpu", "a100", "--", "python3", "train.py"],
        &["profile", "--device-as", "a100", "--", "python3", "train.py"],
        &["profile", "--then", "replay -d a100", "--", "python3", "train.py"],
        &["check", &job, "--site", &site, "--request", "gpu:t4:1"],
    ] {
        let ran = xmem(args);
        let message = flat(&ran);
        assert_eq!(ran.code, 2, "{args:?}: {message}");
        assert!(message.contains(several), "{args:?}: {message}");
    }
    let message = refused(command(["check", &job]).current_dir(folder.path("work")));
    assert!(message.contains(several), "{message}");
    let message = refused(command(["check", &job]).env("XMEM_DEVICE", "4050"));
    assert!(message.contains("unknown device `4050`: `xmem devices` lists"), "{message}");
    let message = flat(&xmem(["replay", &job, "-d", "4050"]));
    assert!(message.contains("unknown device `4050`"), "{message}");
    assert!(!message.contains("did you mean"), "{message}");
    assert!(message.contains("`xmem devices` lists"), "{message}");
    assert!(message.contains("--capacity 24GiB"), "{message}");
}

/// `--capacity 24` was 24 bytes, and every job did not fit.
#[test]
fn a_capacity_without_a_unit_is_asked_back() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    folder.put("site.toml", b"[[gpu]]\ndevice = \"t4\"\nmemory = \"15\"\n");
    folder.put("work/xmem.toml", b"device = \"t4\"\nbudget = 24\n");
    let site = folder.path("site.toml");
    for (args, advice) in [
        (&["replay", &job, "--capacity", "24"][..], "write 24GiB"),
        (&["replay", &job, "--budget", "24"], "write 24GiB"),
        (&["replay", &job, "--capacity", "24576"], "write 24576MiB"),
        (&["check", &job, "-d", "t4", "--capacity", "16"], "write 16GiB"),
        (&["report", &job, "--capacity", "1.5"], "write 1.5GiB"),
        (&["offload", &job, "--capacity", "6"], "write 6GiB"),
        (&["simulate", &job, "--capacity", "12"], "write 12GiB"),
        (&["simulate", &job, "--total", "12"], "write 12GiB"),
        (&["snapshot", "replay", &job, "--capacity", "20"], "write 20GiB"),
        (&["profile", "--max-memory", "24", "--", "python3", "train.py"], "write 24GiB"),
        (&["check", &job, "--site", &site, "--request", "gpu:t4:1"], "write 15GiB"),
    ] {
        let ran = xmem(args);
        let message = flat(&ran);
        assert_eq!(ran.code, 2, "{args:?}: {message}");
        assert!(message.contains("has no unit"), "{args:?}: {message}");
        assert!(message.contains(advice), "{args:?}: {message}");
    }
    let message = refused(command(["check", &job]).current_dir(folder.path("work")));
    assert!(message.contains("`24` has no unit") && message.contains("24GiB"), "{message}");
    // With a unit, or as a number of bytes that a device has, it is what was said.
    for (size, bytes) in [("24B", 24_u64), ("67108864", 1 << 26), ("24GiB", 24 << 30)] {
        let ran = xmem(["replay", &job, "--capacity", size, "-f", "json"]);
        assert_eq!(ran.json()["device"]["memory_bytes"], bytes, "{size}: {}", ran.stderr);
    }
}

#[test]
fn every_device_can_be_chosen_by_its_name() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    for device in xmem::devices::devices().iter().step_by(9) {
        let ran = xmem(["replay", &job, "-d", &device.name, "-f", "json"]);
        assert_eq!(ran.json()["device"]["name"], device.name.as_str());
    }
}

#[test]
fn a_device_of_ones_own() {
    let folder = Folder::new();
    let number = |name: &str, value: &str| {
        format!("[device.{name}]\n{value}\nsource = \"measured on my machine\"\n")
    };
    let device = [
        "[[device]]\nname = \"mine-1g\"\ntitle = \"My GPU\"\n".to_owned(),
        number("memory", "mib = 1000"),
        number("context", "mib = 200"),
        number("compute-capability", "value = \"8.9\""),
        number("sms", "value = 24"),
        number("max-threads-per-sm", "value = 1536"),
    ];
    folder.put("mine.toml", device.concat().as_bytes());
    let (job, mine) = (folder.path("job.json"), folder.path("mine.toml"));
    let ran = xmem(["replay", &job, "--device-file", &mine, "-f", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.json()["device"]["title"], "My GPU");
    assert_eq!(ran.json()["device"]["memory_bytes"], 1000_u64 << 20);
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = xmem(["completions", shell]);
        assert_eq!(ran.code, 0, "{shell}");
        assert!(ran.stdout.contains("min-capacity"), "{shell}");
    }
    // Wherever a device is named, the shell offers those that are known.
    let mut program = xmem_cli::command();
    program.build();
    let names = ["device", "devices", "device_as", "against_device", "virtual_gpu"];
    for command in program.get_subcommands() {
        for arg in command.get_arguments().filter(|arg| names.contains(&arg.get_id().as_str())) {
            let offered = arg.get_possible_values();
            let is_known = offered.iter().any(|value| value.get_name() == "a100-40g");
            assert!(is_known, "{} {}", command.get_name(), arg.get_id());
        }
    }
}

#[test]
fn the_manual_page_and_the_version() {
    let man = xmem(["man"]);
    assert!(man.stdout.contains(".TH xmem"), "{}", man.stdout);
    let version = xmem(["--version"]);
    assert_eq!(version.stdout, format!("xmem {}\n", env!("CARGO_PKG_VERSION")));
    xmem_cli::command().debug_assert();
}
