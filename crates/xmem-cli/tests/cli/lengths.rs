//! `xmem replay --vary`.

use crate::recorded::trace;
use crate::schema_check::check;
use crate::shell::{Ran, xmem};
use expect_test::expect;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.lengths.1.schema.json");

fn recording() -> String {
    format!("{}/../../traces/lengths/cpu.json.zst", env!("CARGO_MANIFEST_DIR"))
}

fn vary(options: &[&str]) -> Ran {
    let recording = recording();
    xmem(["replay", &recording, "-d", "a100-40g"].iter().chain(options))
}

/// A message without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "")
}

#[test]
fn the_text_shows_the_distribution_its_growth_and_the_fit() {
    let ran = vary(&["--vary", "seq=64..128", "--iterations", "20", "--orders", "10"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (first, rest) = ran.stdout.split_once('\n').expect("lines");
    assert_eq!(
        first,
        "FITS  fits in 10 of 10 orders  on a100-40g (NVIDIA A100-SXM4-40GB, 39.49 GiB)"
    );
    let (_, rest) = rest.split_once('\n').expect("the name comes second");
    expect![[r#"
          allocator: PyTorch 2.11 (from the trace)

        Peak reserved                              default segments      expandable_segments
          all of the greatest length                      88.00 MiB                88.00 MiB
          random order: lowest                            90.00 MiB                88.00 MiB
            median                                       110.00 MiB                88.00 MiB
            90th percentile                              110.00 MiB                90.00 MiB
            95th percentile                              110.00 MiB               110.00 MiB
            highest                                      110.00 MiB               110.00 MiB
          highest in nvidia-smi                          560.00 MiB               560.00 MiB
          highest peak allocated                          75.63 MiB                74.88 MiB
          iterations to the last new peak            4 (at most 19)           3 (at most 17)

        Peak so far: median (highest)              default segments      expandable_segments
          after 1 iteration                   64.00 MiB (82.00 MiB)    62.00 MiB (82.00 MiB)
          after 2 iterations                 88.00 MiB (108.00 MiB)    86.00 MiB (88.00 MiB)
          after 3 iterations                 88.00 MiB (110.00 MiB)    88.00 MiB (88.00 MiB)
          after 5 iterations                 88.00 MiB (110.00 MiB)    88.00 MiB (88.00 MiB)
          after 10 iterations               110.00 MiB (110.00 MiB)   88.00 MiB (108.00 MiB)
          after 20 iterations               110.00 MiB (110.00 MiB)   88.00 MiB (110.00 MiB)

        Sizes
          fitted to recorded iterations of sequence length 64, 96, 128: of the 193 blocks that an iteration
          allocates, 61 are the same at all lengths, 92 grow in proportion, 24 grow with the square, 16 were
          seen at one length only

        Notes
          warning  16 of 193 blocks of an iteration (18.00 MiB) have no counterpart in iterations of other
                   lengths; lengths that are nearest to their own are taken to have them
          note     Python stacks were not recorded: module paths and source lines are missing
          note     memory is still allocated at the end of the trace (149 times)
    "#]].assert_eq(rest);
}

#[test]
fn json_follows_its_schema_and_is_the_same_on_any_number_of_threads() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("schema");
    let asked = ["--vary", "seq=64..128:32", "--iterations", "9", "--seed", "5", "-f", "json"];
    let with = |threads: &str| vary(&[&asked[..], &["--threads", threads]].concat());
    let one = with("1");
    check(&schema, &one.json()).expect("valid");
    assert_eq!(one.stdout, with("4").stdout);
    assert_eq!(one.json()["varying"]["extents"], serde_json::json!([64, 96, 128]));
    assert_eq!(one.json()["runs"][0]["orders"][1]["seed"], 6);
    let exact = vary(&["--vary", "seq=64..128", "--order", "128,64,96", "-f", "json"]);
    check(&schema, &exact.json()).expect("valid");
    assert_eq!(exact.json()["varying"]["iterations"], 3);
    assert_eq!(exact.json()["runs"][0]["orders"][0]["seed"], Value::Null);
    let settings = exact.json()["settings"].to_string();
    assert!(settings.contains("--vary seq=64..128 --order 128,64,96"), "{settings}");
}

#[test]
fn orders_that_do_not_fit_decide_the_exit_code() {
    let tight = ["--capacity", "520MiB", "--vary", "seq=64..128", "--iterations", "9"];
    let ran = vary(&tight);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.starts_with("DOES NOT FIT  fits in "), "{}", ran.stdout);
    assert_eq!(vary(&[&tight[..], &["--exit-zero"]].concat()).code, 0);
    let brief = vary(&[&tight[..], &["-q"]].concat()).stdout;
    assert!(brief.starts_with("DOES NOT FIT  ") && brief.lines().count() == 1, "{brief}");
}

#[test]
fn what_fits_needed_more_than_the_device_has() {
    // A capacity in which all orders run, and only because cached memory is released.
    let device = ["--vary", "seq=64..128", "--iterations", "9", "--orders", "3"];
    let found = (512..600).step_by(4).find_map(|capacity| {
        let capacity = format!("{capacity}MiB");
        let options = [&["--capacity", capacity.as_str()][..], &device].concat();
        let ran = vary(&options);
        (ran.code == 0)
            .then_some((options.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(), capacity))
    });
    let (options, capacity) = found.expect("a capacity");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let answer = vary(&[&options[..], &["-f", "json"]].concat()).json();
    let number = |path: &str| answer.pointer(path).and_then(Value::as_u64).expect("a number");
    let context = number("/device/context_bytes");
    let (here, ample) =
        (number("/runs/0/reserved_on_device_bytes/max"), number("/runs/0/reserved_bytes/max"));
    let memory = number("/device/memory_bytes");
    assert!(here + context <= memory && here <= ample, "{here} {ample} {memory}");
    let brief = vary(&[&options[..], &["-q"]].concat()).stdout;
    assert!(brief.starts_with("FITS  takes "), "{brief}");
    let shown = brief.split(" of ").next().expect("words");
    let most = format!("{:.2} MiB", (here + context) as f64 / (1 << 20) as f64);
    assert!(shown.ends_with(&most), "{capacity}: {brief}: {most}");
    assert_eq!(brief.contains("where there is room"), here < ample, "{brief}");
}

#[test]
fn no_order_that_fits_was_told_as_does_not_fit_in_0_of_20() {
    let ran = vary(&["--capacity", "460MiB", "--vary", "seq=64..128", "--iterations", "9", "-q"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(
        ran.stdout.starts_with("DOES NOT FIT  fits in 0 of 20 orders: takes "),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_recording_of_one_length_gets_an_error_that_says_how_to_record_two() {
    let trace = trace("gpt2_adamw");
    let ran = xmem(["replay", &trace, "-d", "a100-40g", "--vary", "seq=64..128"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    let words = words(&ran.stderr);
    assert!(words.contains("have sequence length"), "{words}");
    assert!(words.contains("xmem profile --vary seq=A,B --steps 4"), "{words}");
}

#[test]
fn what_does_not_go_with_vary_is_refused_before_anything_is_read() {
    let vary = ["--vary", "seq=64..128"];
    for (options, problem) in [
        (&["--snapshot", "run.pickle"][..], "--snapshot writes the run"),
        (&["--min-capacity"], "--min-capacity is about"),
        (&["-f", "csv"], "its formats are text and json"),
        (&["--iterations", "1..3"], "--iterations is the number"),
        (&["--torch", "2.6", "--torch", "2.11"], "2 devices or allocators were given"),
        (&["missing.json"], "2 traces were given"),
    ] {
        let own = ["replay", "nothing.json", "-d", "a100-40g"];
        let ran = xmem(own.iter().chain(&vary).chain(options));
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(words(&ran.stderr).contains(problem), "{options:?}: {}", ran.stderr);
    }
    for options in [&["--vary", "seq=9..1"][..], &["--vary", "width=1..2"], &["--seed", "1"]] {
        let own = ["replay", "nothing.json", "-d", "a100-40g"];
        assert_eq!(xmem(own.iter().chain(options)).code, 2, "{options:?}");
    }
}
