//! What `xmem fit` keeps with a recording, in the answers about it.

use crate::job::Folder;
use crate::lines::GPU;
use crate::recorded;
use crate::schema_check::check;
use crate::shell::xmem;
use expect_test::expect;
use serde_json::json;

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.measures.1.schema.json");

/// A file in a folder with a recorded job and what was found out about it for the device of [`device`].
fn kept(folder: &Folder) -> String {
    let trace = std::fs::read(recorded::trace("mlp_adam")).expect("recorded");
    let trace = String::from_utf8(zstd::decode_all(&trace[..]).expect("zstd")).expect("UTF-8");
    let (_, rest) = trace.split_once('{').expect("an object");
    let measure = |names: &str, gpus: u32, mib: u64| json!({"names": names, "gpus": gpus, "needs_bytes": mib << 20, "step_percent": 120});
    let found = json!({
        "schema": "xmem.measures.1",
        "device": "my-gpu",
        "measures": [
            measure("checkpointing", 1, 460), measure("fused", 1, 480), measure("fsdp=2", 2, 300),
        ],
        "largest": {"name": "batch", "value": 24, "needs_bytes": 440u64 << 20},
    });
    check(&serde_json::from_str(SCHEMA).expect("schema"), &found).expect("valid");
    let notes = json!({"schema": "xmem.recording.1"});
    let text = format!(r#"{{"xmem_measures":{found},"xmem_recording":{notes},{rest}"#);
    folder.put("kept.json", text.as_bytes());
    folder.path("kept.json")
}

/// The file of a device of 500 MiB.
fn device(folder: &Folder) -> String {
    folder.put("device.toml", GPU.replace("12000", "500").as_bytes());
    folder.path("device.toml")
}

#[test]
fn measures_that_fit_recorded_are_listed_for_their_device() {
    let folder = Folder::new();
    let (kept, device) = (kept(&folder), device(&folder));
    let asked = |options: &[&str]| {
        let ran = xmem([&["check", kept.as_str()], options].concat());
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        ran.stdout
            .lines()
            .skip(1)
            .map(|line| format!("{}\n", line.trim_start()))
            .collect::<String>()
    };
    // Of the 500 MiB, 5 % are to stay free: `fused` needs too much.
    expect![[r#"
          takes 550.00 MiB where there is room
          runs out of memory at train.py(86): job, iteration 0, optimizer step, aten::sqrt
          fits on gtx1650-4g
          needs 496.00 MiB with fused=True in the optimizer
          needs 528.00 MiB with foreach=False in the optimizer
          fits with checkpointing, recorded by xmem fit (needs 460.00 MiB)
          fits with fsdp=2 over 2 GPUs, recorded by xmem fit (needs 300.00 MiB)
          fits with batch=24, recorded by xmem fit (needs 440.00 MiB)
    "#]]
    .assert_eq(&asked(&["--device-file", &device, "--margin", "5%"]));
    let elsewhere = asked(&["--capacity", "500MiB"]);
    assert!(!elsewhere.contains("recorded by xmem fit"), "{elsewhere}");
}

#[test]
fn the_next_command_has_the_best_measures_that_fit_recorded() {
    let folder = Folder::new();
    let (kept, device) = (kept(&folder), device(&folder));
    let ran = xmem(["replay", &kept, "--device-file", &device]);
    let found: Vec<&str> = ran.stdout.lines().filter(|l| l.contains("xmem run")).collect();
    expect!["  fits: needs 460.00 MiB, step time +20 %, recorded by xmem fit  xmem run --with checkpointing -- COMMAND"].assert_eq(&found.join("\n"));
}

#[test]
fn an_option_of_the_allocator_is_named_if_the_job_fits_with_it() {
    let trace = recorded::trace("big_vgg16_rmsprop_b100");
    for (capacity, is_named) in [("3290MiB", true), ("2900MiB", false), ("8GiB", false)] {
        let ran = xmem(["replay", &trace, "--capacity", capacity]);
        let named = ran.stdout.lines().find(|line| line.contains("--alloc-conf"));
        assert_eq!(named.is_some(), is_named, "{capacity}: {}", ran.stdout);
        if let Some(named) = named {
            let (purpose, command) = named.trim().split_once("  ").expect("two columns");
            assert!(purpose.starts_with("fits: needs "), "{named}");
            let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
            assert_eq!(xmem(arguments).code, 0, "the job fits with it: {command}");
        }
    }
}
