//! `xmem replay` on the hand-made job.

use crate::job::{self, Folder};
use crate::shell::{xmem, xmem_with_input};
use expect_test::expect;
use serde_json::Value;

const MIB: u64 = 1 << 20;

#[test]
fn the_text_answer() {
    let input = job::trace();
    let ran = xmem_with_input(["replay", "-", "--device", "t4-16g"], &input);
    expect![[r#"
        FITS  on t4-16g (Tesla T4, 14.58 GiB)
          -, 2 iterations, SGD

          peak allocated            80.00 MiB   torch.cuda.max_memory_allocated()
          peak reserved             84.00 MiB   torch.cuda.max_memory_reserved()
          expected in nvidia-smi   274.00 MiB   reserved + 190.00 MiB context (140 to 240 MiB)
          headroom                  14.31 GiB   98 % of 14.58 GiB stay free

        Peak: iteration 0, backward
          module  Net_0
          op      ReluBackward0 > aten::threshold_backward
          line    train.py(7): forward

        Memory at the peak by role
          activation         64.00 MiB  80 %  ████████████████████████████████████████  1 block
          parameter           8.00 MiB  10 %  █████                                     1 block
          gradient            8.00 MiB  10 %  █████                                     1 block

        Largest blocks alive at the peak
                 64.00 MiB  activation       iteration 0, forward         aten::relu
                  8.00 MiB  parameter        before iteration 0           aten::empty [model-placement]
                  8.00 MiB  gradient         iteration 0, backward        aten::threshold_backward

        Fragmentation  4.00 MiB (5 %) of the 84.00 MiB reserved at the peak allocated holds no tensor
          in 1 free piece, the largest 4.00 MiB; none could be released

        FITS  needs 274.00 MiB of 14.58 GiB on t4-16g  (--full shows more)
    "#]].assert_eq(&ran.stdout);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn the_json_answer_has_the_figures() {
    let folder = Folder::new();
    let ran = xmem(["replay", &folder.path("job.json"), "--device", "t4-16g", "-f", "json"]);
    let answer = ran.json();
    assert_eq!(ran.code, 0);
    assert_eq!(answer["verdict"], "fits");
    assert_eq!(answer["peak"]["allocated_bytes"], 80 * MIB);
    let context = answer["device"]["context_bytes"].as_u64().expect("integer");
    let reserved = answer["peak"]["reserved_bytes"].as_u64().expect("integer");
    assert_eq!(answer["peak"]["device_bytes"], reserved + context);
    assert_eq!(answer["peak"]["at"]["phase"], "backward");
    assert_eq!(answer["peak"]["at"]["op"], "aten::threshold_backward");
    let roles = answer["by_role"].as_object().expect("object");
    let sum: u64 = roles.values().filter_map(Value::as_u64).sum();
    assert_eq!(sum, 80 * MIB);
    assert_eq!(answer["rules"], Value::Null);
}

#[test]
fn the_verdict_is_the_exit_code() {
    let folder = Folder::new();
    let (job, silent) = (folder.path("job.json"), folder.path("silent.json"));
    for (args, code) in [
        (vec![job.as_str(), "--capacity", "4GiB"], 0),
        (vec![job.as_str(), "--capacity", "500MiB"], 1),
        (vec![job.as_str(), "--capacity", "500MiB", "--exit-zero"], 0),
        (vec![silent.as_str(), "--capacity", "4GiB"], 4),
        (vec![silent.as_str(), "--capacity", "4GiB", "--exit-zero"], 0),
    ] {
        let ran = xmem(["replay"].iter().chain(&args));
        assert_eq!(ran.code, code, "{args:?}\n{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn an_out_of_memory_says_where_and_how_much_is_missing() {
    let folder = Folder::new();
    let ran =
        xmem(["replay", &folder.path("job.json"), "--capacity", "500MiB", "--format", "json"]);
    let answer = ran.json();
    assert_eq!(answer["verdict"], "does_not_fit");
    assert_eq!(answer["headroom_bytes"], Value::Null);
    assert_eq!(answer["out_of_memory"]["at"]["op"], "aten::relu");
    assert_eq!(answer["out_of_memory"]["requested_bytes"], 64 * MIB);
    let needed = answer["out_of_memory"]["needed_bytes"].as_u64().expect("integer");
    assert_eq!(answer["shortfall_bytes"], needed - 500 * MIB);
}

#[test]
fn the_smallest_capacity_is_enough_and_less_is_not() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let with = |capacity: &str| {
        xmem(["replay", &job, "--capacity", capacity, "--min-capacity", "-f", "json"])
    };
    let least = with("4GiB").json()["min_capacity_bytes"].as_u64().expect("integer");
    assert_eq!(with(&least.to_string()).code, 0);
    assert_eq!(with(&(least - 2 * MIB).to_string()).code, 1);
}

#[test]
fn a_capacity_replaces_that_of_the_device() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let ran = xmem(["replay", &job, "--device", "h100-80g", "--capacity", "300MiB", "-f", "json"]);
    let answer = ran.json();
    assert_eq!(answer["device"]["name"], "h100-80g");
    assert_eq!(answer["device"]["memory_bytes"], 300 * MIB);
    assert_eq!(ran.code, 1);
}

#[test]
fn iterations_can_be_chosen() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let seen = |range: &str| {
        let answer =
            xmem(["replay", &job, "-d", "t4-16g", "-f", "json", "--iterations", range]).json();
        let list = answer["per_iteration"].as_array().expect("list").clone();
        let iterations: Vec<Option<u64>> = list.iter().map(|i| i["iteration"].as_u64()).collect();
        (iterations, answer["peak"]["at"]["iteration"].as_u64().expect("integer"))
    };
    assert_eq!(seen("1"), (vec![None, Some(0)], 0));
    assert_eq!(seen("2"), (vec![None, Some(0), Some(1)], 0));
    assert_eq!(seen("1..2"), (vec![Some(1)], 1));
}

#[test]
fn a_chosen_iteration_has_its_own_blocks_at_the_peak() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let answer =
        xmem(["replay", &job, "-d", "t4-16g", "-f", "json", "--iterations", "1..2"]).json();
    assert_eq!(answer["peak"]["allocated_bytes"], 80 * MIB);
    let blocks = answer["largest_blocks"].as_array().expect("list");
    let bytes: Vec<u64> = blocks.iter().filter_map(|b| b["bytes"].as_u64()).collect();
    assert_eq!(bytes, [64 * MIB, 8 * MIB, 8 * MIB]);
    assert_eq!(blocks[0]["origin"]["iteration"], 1);
}

#[test]
fn the_list_of_blocks_has_the_length_asked_for() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    for (top, listed) in [("0", 0), ("2", 2), ("100", 3)] {
        let answer = xmem(["replay", &job, "-d", "t4-16g", "-f", "json", "--top", top]).json();
        assert_eq!(answer["largest_blocks"].as_array().map(Vec::len), Some(listed), "{top}");
    }
}

#[test]
fn explain_lists_every_rule() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let ran = xmem(["replay", &job, "-d", "t4-16g", "--explain"]);
    for rule in xmem::orchestrator::rules() {
        assert!(ran.stdout.contains(rule.name), "{}", rule.name);
    }
    let answer = xmem(["replay", &job, "-d", "t4-16g", "--explain", "-f", "json"]).json();
    let named: Vec<&str> = answer["rules"]
        .as_array()
        .expect("list")
        .iter()
        .filter_map(|r| r["rule"].as_str())
        .collect();
    assert_eq!(named, xmem::orchestrator::rules().iter().map(|r| r.name).collect::<Vec<_>>());
}

#[test]
fn what_ifs_reach_the_answer() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let rule = xmem::orchestrator::rules()[0].name;
    let args = [
        "replay",
        &job,
        "-d",
        "t4-16g",
        "-f",
        "json",
        "--zero-grad",
        "pos0",
        "--set-to-none",
        "false",
        "--optimizer-impl",
        "for-loop",
        "--torch",
        "2.6.0+cu124",
        "--no-rule",
        rule,
    ];
    let target = xmem(args).json()["target"].clone();
    assert_eq!(target["zero_grad"], "pos0");
    assert_eq!(target["set_to_none"], false);
    assert_eq!(target["optimizer_impl"], "for-loop");
    assert_eq!(target["torch"], "2.6");
    assert_eq!(target["disabled_rules"][0], rule);
}

#[test]
fn gradients_that_stay_are_seen_in_the_next_forward() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let end = |flag: &str| {
        let args = ["replay", &job, "-d", "t4-16g", "-f", "json", "--set-to-none", flag];
        let curve = xmem(args).json()["curve"]["allocated_bytes"].clone();
        curve.as_array().and_then(|c| c.last()?.as_u64()).expect("a last point")
    };
    assert_eq!(end("false") - end("true"), 8 * MIB);
}
