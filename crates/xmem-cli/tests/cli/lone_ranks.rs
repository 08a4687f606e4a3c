//! `xmem profile --ranks`, with scripts that speak the hook's side of the protocol: no PyTorch is needed.

use crate::profile::{flat, folder, inflated, new_files, profile};
use serde_json::{Value, json};

/// Exports its environment and settings; rank 0 has a higher peak.
const SCRIPT: &str = r#"
start(3)
rank = int(os.environ["RANK"])
names = ["WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR"]
settings = json.load(open(SESSION + "/settings.json"))
peaks = {"allocated": 1 << 20, "reserved": 2 << 20} if rank else {"allocated": 3 << 20, "reserved": 4 << 20}
facts = {"uses_gpu": True, "virtual_gpu": {"peaks": peaks}}
export(trace=json.dumps({
    "rank": rank, "environment": [os.environ[name] for name in names],
    "settings": [settings["rank"], settings["gpus"]], "xmem_recording": facts, "traceEvents": [],
}))
"#;

fn place(rank: u32, local_rank: u32, node: u32) -> Value {
    json!({"rank": rank, "world_size": 8, "local_rank": local_rank, "local_world_size": 4,
           "node": node, "nodes": 2})
}

#[test]
fn each_rank_is_told_its_place_and_has_a_file() {
    let folder = folder(SCRIPT);
    let options = ["--virtual-gpu", "a100-40g", "--ranks", "8", "--nodes", "2", "--rank", "0,1,6"];
    let ran = profile(&folder, &[&options[..], &["-o", "t.json"]].concat());
    let text = flat(&ran);
    assert_eq!(ran.code, 0, "{text}");
    assert_eq!(new_files(&folder), ["t.rank0.json", "t.rank1.json", "t.rank6.json"]);
    for (rank, local_rank, node) in [(0, 0, 0), (1, 1, 0), (6, 2, 1)] {
        let trace: Value =
            serde_json::from_str(&inflated(&folder, &format!("t.rank{rank}.json"))).expect("JSON");
        assert_eq!(trace["rank"], rank);
        let [local, on] = [local_rank, node].map(|number: u32| number.to_string());
        let expected = json!(["8", local, "4", on, on, "2", "127.0.0.1"]);
        assert_eq!(trace["environment"], expected, "rank {rank}");
        assert_eq!(trace["settings"], json!([place(rank, local_rank, node), 4]));
    }
    for line in [
        "xmem: rank 6 of 8",
        "rank 6 of 8 (node 1 of 2) ran alone",
        "rank 0: peak allocated 3.00 MiB, reserved 4.00 MiB \
         ranks 1, 6 equal: peak allocated 1.00 MiB, reserved 2.00 MiB \
         next: xmem replay t.rank0.json t.rank1.json t.rank6.json --device a100-40g",
    ] {
        assert!(text.contains(line), "`{line}` is not in: {text}");
    }
}

#[test]
fn ranks_on_the_cpu_have_files_and_no_peaks_yet() {
    let script = SCRIPT.replace(r#", "virtual_gpu": {"peaks": peaks}"#, "");
    for engine in ["cpu", "auto"] {
        let folder = folder(&script);
        let options = ["--engine", engine, "--ranks", "8", "--nodes", "2", "--rank", "0,6"];
        let ran = profile(&folder, &[&options[..], &["-o", "t.json"]].concat());
        let text = flat(&ran);
        assert_eq!(ran.code, 0, "{text}");
        assert_eq!(new_files(&folder), ["t.rank0.json", "t.rank6.json"]);
        let trace: Value = serde_json::from_str(&inflated(&folder, "t.rank6.json")).expect("JSON");
        assert_eq!(trace["settings"], json!([place(6, 2, 1), 4]));
        assert!(text.contains("rank 6 of 8 (node 1 of 2) ran alone"), "{text}");
        assert!(!text.contains("peak allocated"), "{text}");
    }
}

#[test]
fn a_single_rank_has_the_file_of_the_option() {
    let folder = folder(SCRIPT);
    let ran = profile(&folder, &["--virtual-gpu", "a100-40g", "--ranks", "8", "-o", "t.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(new_files(&folder), ["t.json"]);
    assert!(ran.stderr.contains("next: xmem replay t.json"), "{}", ran.stderr);
}

#[test]
fn all_ranks_are_recorded_one_after_another_until_one_is_incomplete() {
    let folder =
        folder(&format!("{SCRIPT}\nsys.exit(rank == 2)").replace(
            "export(trace",
            "if rank == 2: export(1, 'exit', detail=1)\nelse: export(trace",
        ));
    let options = ["--virtual-gpu", "a100-40g", "--ranks", "4", "--rank", "all", "-o", "t.json"];
    let ran = profile(&folder, &options);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(new_files(&folder), ["t.rank0.json", "t.rank1.json", "t.rank2.json"]);
}

#[test]
fn ranks_between_equal_ones_are_left_out_and_then_gets_the_others() {
    let folder = folder(SCRIPT);
    let options = ["--virtual-gpu", "a100-40g", "--ranks", "8", "--nodes", "2", "--rank", "auto"];
    let ran = profile(&folder, &[&options[..], &["-o", "t.json"]].concat());
    let text = flat(&ran);
    assert_eq!(ran.code, 0, "{text}");
    let files = ["t.rank0.json", "t.rank1.json", "t.rank3.json", "t.rank7.json"];
    assert_eq!(new_files(&folder), files);
    let expected = "rank 0: peak allocated 3.00 MiB, reserved 4.00 MiB \
         ranks 1, 3, 7 equal: peak allocated 1.00 MiB, reserved 2.00 MiB \
         not recorded, as the ranks around are equal: ranks 2, 4–6 \
         next: xmem replay t.rank0.json t.rank1.json t.rank3.json t.rank7.json --device a100-40g";
    assert!(text.contains(expected), "{text}");

    let folder = self::folder(SCRIPT);
    let then = ["-o", "t.json", "--then", "replay --device a100-40g -f json"];
    let ran = profile(&folder, &[&options[..], &then].concat());
    for file in files {
        assert!(ran.stdout.contains(file) || ran.stderr.contains(file), "{file}: {}", flat(&ran));
    }
}

#[test]
fn on_the_cpu_auto_records_all_ranks_as_their_peaks_are_not_known() {
    let folder = folder(&SCRIPT.replace(r#", "virtual_gpu": {"peaks": peaks}"#, ""));
    let ran = profile(&folder, &["--ranks", "4", "--rank", "auto", "-o", "t.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let files = ["t.rank0.json", "t.rank1.json", "t.rank2.json", "t.rank3.json"];
    assert_eq!(new_files(&folder), files);
}

#[test]
fn ranks_that_cannot_be_recorded_are_refused_before_the_command_runs() {
    let virtual_gpu = ["--virtual-gpu", "a100-40g"];
    let rows: [(&[&str], &str); 6] = [
        (&["--rank", "1", virtual_gpu[0], virtual_gpu[1]], "--ranks <N>"),
        (&["--ranks", "8", "--rank", "8", virtual_gpu[0], virtual_gpu[1]], "no rank 8 among 8"),
        (
            &["--ranks", "8", "--rank", "x", virtual_gpu[0], virtual_gpu[1]],
            "`all`, `auto` or ranks such as",
        ),
        (&["--ranks", "8", "--nodes", "3"], "evenly over 3 nodes"),
        (&["--ranks", "128"], "more than 64 GPUs per node"),
        (&["--ranks", "8", "--gpus", "8", virtual_gpu[0], virtual_gpu[1]], "cannot be used with"),
    ];
    for (options, said) in rows {
        let folder = folder("open('ran', 'w')");
        let ran = profile(&folder, options);
        let text = flat(&ran);
        assert_eq!(ran.code, 2, "{options:?}: {text}");
        assert!(text.contains(said), "{options:?}: {text}");
        assert_eq!(new_files(&folder), [""; 0], "{options:?}");
    }
}
