//! The other commands.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{Ran, xmem};
use expect_test::expect;

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
    let text = xmem(["devices"]);
    assert_eq!(text.code, 0);
    for device in xmem::devices() {
        assert!(text.stdout.contains(&device.name), "{}", device.name);
    }
    let json = xmem(["devices", "--format", "json"]);
    valid(DEVICES, &json);
    let listed = json.json()["devices"].as_array().map(Vec::len);
    assert_eq!(listed, Some(xmem::devices().len()));
}

#[test]
fn every_device_can_be_chosen_by_its_name() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    for device in xmem::devices().iter().step_by(9) {
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
}

#[test]
fn the_manual_page_and_the_version() {
    let man = xmem(["man"]);
    assert!(man.stdout.contains(".TH xmem"), "{}", man.stdout);
    let version = xmem(["--version"]);
    assert_eq!(version.stdout, format!("xmem {}\n", env!("CARGO_PKG_VERSION")));
    xmem_cli::command().debug_assert();
}
