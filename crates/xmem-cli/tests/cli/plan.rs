//! `xmem plan` on lists written by hand and on recorded traces.

use crate::job::{Folder, growing_trace};
use crate::schema_check::check;
use crate::shell::{Ran, command, xmem, xmem_with_input};
use expect_test::expect;
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.plan.1.schema.json");
const HINTS: &str = include_str!("../../../../docs/schema/xmem.plan-hints.2.schema.json");
const RUN: &str = include_str!("../../../../docs/schema/xmem.plan-run.2.schema.json");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const MIB: u64 = 1 << 20;

fn trace(name: &str) -> String {
    format!("{ROOT}/traces/{name}/trace.json.zst")
}

fn valid(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let document = ran.json();
    check(&serde_json::from_str(SCHEMA).expect("schema"), &document).expect("valid");
    document
}

/// 4 MiB that give way to 8 MiB, beside 2 MiB that are never freed.
fn operations() -> Vec<u8> {
    let alloc = |id: u32, mib: u64| json!({"op": "alloc", "id": id, "size": mib * MIB});
    let free = |id: u32| json!({"op": "free", "id": id});
    let list =
        json!([alloc(1, 4), alloc(2, 2), free(1), alloc(3, 8), free(3), alloc(4, 5), free(4)]);
    serde_json::to_vec(&list).expect("JSON")
}

/// The page without the times that planners took.
fn without_times(page: &str) -> String {
    let line = |line: &str| {
        // The width of the column depends on the times.
        if let Some(heading) = line.strip_suffix("time") {
            return format!("{}\n", heading.trim_end());
        }
        let is_row = [" µs", " ms", " s"].iter().any(|unit| line.ends_with(unit));
        let kept = if is_row { line.rsplitn(3, ' ').last().unwrap_or("") } else { line };
        format!("{}\n", kept.trim_end())
    };
    page.lines().map(line).collect()
}

#[test]
fn a_list_of_operations_as_text() {
    let ran = xmem_with_input(["plan", "-", "--planner", "bump,bestfit"], &operations());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    expect![[r#"
        PyTorch reserves 20.00 MiB for what fits in 10.00 MiB (planned, proven optimal)
          -: 4 blocks
          allocator: PyTorch 2.11, ascending addresses

        Memory of these blocks
          live at once (lower bound)             10.00 MiB
          planned by bestfit                     10.00 MiB
          PyTorch, reserved                      20.00 MiB  2.00 times as much
          TensorFlow's BFC (growth), reserved    16.00 MiB  +60.00 %
          PyTorch, expandable_segments:True      20.00 MiB  2.00 times as much
          without reuse                          19.00 MiB  +90.00 %

        Planners
          planner       peak  of bound  optimal
          bump     19.00 MiB    1.9000  not shown
          bestfit  10.00 MiB    1.0000  yes: the bound

        Fragmentation
                                     external      waste  request that raised the peak  free then  unusable
          planned                      0.00 %   2.00 MiB                      8.00 MiB        0 B       0 %
          PyTorch                    100.00 %  16.00 MiB                      4.00 MiB        0 B       0 %
          TensorFlow's BFC (growth)   60.00 %   6.00 MiB                      8.00 MiB   6.00 MiB     100 %
    "#]].assert_eq(&without_times(&ran.stdout));
}

#[test]
fn the_pages_show_what_is_printed() {
    let pages = [
        include_str!("../../../../docs/planning.md"),
        include_str!("../../../../docs/guide/run-a-plan.md"),
    ];
    let folder = Folder::new();
    folder.put("trace.json.zst", &std::fs::read(trace("gpt2_adamw")).expect("a trace"));
    let blocks: Vec<&str> =
        pages.iter().flat_map(|page| page.split("```console\n$ xmem ").skip(1)).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let (shown, _) = block.split_once("\n```").expect("the fence is closed");
        let (typed, printed) = shown.split_once('\n').expect("a command and what it prints");
        let mut command = command(typed.split(' '));
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        assert_eq!(without_times(ran.stdout.trim_end()), without_times(printed), "{typed}");
    }
}

#[test]
fn quiet_text_is_one_line() {
    let ran = xmem_with_input(["plan", "-", "--planner", "bump", "-q"], &operations());
    expect![[r#"
        PyTorch reserves 20.00 MiB for what fits in 19.00 MiB (planned, at most 90.00 % above the optimum)  -
    "#]].assert_eq(&ran.stdout);
}

#[test]
fn the_headline_does_not_promise_a_gain_that_there_is_not() {
    for (table, headline) in [
        (
            "a,0,2,4611686018427387904",
            "PyTorch does not serve 1 block larger than any device; a plan needs",
        ),
        (
            "z,0,9,512\na,0,1,16777216\nb,2,3,16777216",
            "PyTorch reserves 18.00 MiB, and the best plan found needs 32.00 MiB",
        ),
    ] {
        let table = format!("id,lower,upper,size\n{table}\n");
        // Bump never uses memory again while something is live.
        let planner = if table.contains("z,0,9,") { "bump" } else { "bestfit" };
        let ran = xmem_with_input(["plan", "-", "--planner", planner, "-q"], table.as_bytes());
        assert!(ran.stdout.starts_with(headline), "{} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_table_of_minimalloc_with_offsets() {
    let table = "id,lower,upper,size\na,0,2,4\nb,1,3,8\nc,2,4,4\n";
    let args = ["plan", "-", "--planner", "bump,bestfit", "--format", "json", "--offsets"];
    let document = valid(&xmem_with_input(args, table.as_bytes()));
    assert_eq!(document["source"]["kind"], "table");
    assert_eq!(document["lower_bound_bytes"], 12);
    assert_eq!(document["total_bytes"], 16);
    assert_eq!(document["best"], json!({"planner": "bestfit", "peak_bytes": 12, "optimal": true}));
    assert_eq!(document["plans"][0]["offsets"], json!([0, 4, 12]));
    assert_eq!(document["plans"][0]["peak_bytes"], 16);
    let names: Vec<&Value> =
        document["block_list"].as_array().expect("blocks").iter().map(|b| &b["name"]).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn the_heap_map_as_csv_is_a_plan_without_overlaps() {
    let trace = trace("mlp_adam");
    let ran = xmem(["plan", &trace, "--planner", "bestfit", "--format", "csv"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let mut rows = csv::Reader::from_reader(ran.stdout.as_bytes());
    let header = ["id", "start", "end", "offset", "size", "category", "op"];
    assert_eq!(rows.headers().expect("a header"), header.as_slice());
    let rows: Vec<(u64, u64, u64, u64)> = rows
        .records()
        .map(|row| {
            let row = row.expect("a row");
            let number = |column: usize| row[column].parse().expect("a number");
            (number(1), number(2), number(3), number(4))
        })
        .collect();
    let document = valid(&xmem(["plan", &trace, "--planner", "bestfit", "--format", "json"]));
    assert_eq!(document["blocks"], rows.len());
    let peak = rows.iter().map(|row| row.2 + row.3).max();
    assert_eq!(document["best"]["peak_bytes"], peak.expect("rows"));
    for (at, a) in rows.iter().enumerate() {
        for b in &rows[..at] {
            let apart = a.1 <= b.0 || b.1 <= a.0 || a.2 + a.3 <= b.2 || b.2 + b.3 <= a.2;
            assert!(apart, "{a:?} {b:?}");
        }
    }
}

#[test]
fn an_iteration_is_planned_without_what_outlives_it() {
    let trace = trace("gpt2_adamw");
    let one = valid(&xmem(["plan", &trace, "--planner", "bestfit", "--format", "json"]));
    assert_eq!(one["source"], json!({"kind": "iteration", "iteration": 1, "iterations": 3}));
    let roles = one["outside"]["by_role"].as_array().expect("roles");
    let bytes = |role: &str| {
        roles
            .iter()
            .find(|share| share["role"] == role)
            .map_or(0, |share| share["bytes"].as_u64().expect("bytes"))
    };
    let parameters = bytes("parameter");
    assert!(parameters > 0 && bytes("gradient") == 0);
    // Adam has two tensors for each parameter.
    assert!(bytes("optimizer_state").abs_diff(2 * parameters) < MIB);
    let all = valid(&xmem([
        "plan",
        &trace,
        "--planner",
        "bestfit",
        "--format",
        "json",
        "--scope",
        "all",
    ]));
    assert_eq!(all["source"]["kind"], "recording");
    assert_eq!(all["outside"], Value::Null);
    assert!(all["blocks"].as_u64() > one["blocks"].as_u64());
    assert_eq!(one["job"], all["job"]);
    assert_eq!(one["outside"]["together_bytes"], all["lower_bound_bytes"]);
    // What the allocator does with all blocks is what it does in the job.
    assert_eq!(all["allocators"][0]["reserved_bytes"], all["job"]["reserved_bytes"]);
}

/// The snapshot of a predicted run had no iteration: its frames name those of the trace, and the roles.
#[test]
fn the_snapshot_of_a_predicted_run_is_planned_as_its_trace() {
    let folder = Folder::empty();
    let (trace, snapshot) = (trace("gpt2_adamw"), folder.path("run.pickle"));
    let wrote = xmem(["replay", &trace, "-d", "a100-40g", "--snapshot", &snapshot]);
    assert_eq!(wrote.code, 0, "{}", wrote.stderr);
    let plans = [&trace, &snapshot].map(|input| {
        let plan = valid(&xmem(["plan", input, "-f", "json", "--planner", "greedy-by-size"]));
        ["source", "lower_bound_bytes", "allocators", "outside"].map(|part| plan[part].clone())
    });
    assert!(plans[0].iter().all(|part| !part.is_null()), "{plans:?}");
    assert_eq!(plans[0], plans[1]);
    let roles = [&trace, &snapshot].map(|input| {
        let answer = xmem(["replay", input, "-d", "a100-40g", "-f", "json"]).json();
        answer["by_role"].clone()
    });
    assert!(!roles[0].is_null(), "{roles:?}");
    assert_eq!(roles[0], roles[1]);
}

#[test]
fn a_snapshot_with_history_is_planned_whole() {
    let snapshot = format!("{ROOT}/crates/xmem-eval/tests/data/mlp_adam.pickle.zst");
    let args = ["plan", &snapshot, "--scope", "all", "--planner", "bestfit", "--format", "json"];
    let document = valid(&xmem(args));
    assert_eq!(document["allocators"][0]["reserved_bytes"], 250 * MIB);
    assert_eq!(document["job"]["reserved_bytes"], 250 * MIB);
}

#[test]
fn the_series_has_a_row_for_each_placement_moment_and_class() {
    let folder = Folder::new();
    folder.put("ops.json", &operations());
    let (ops, series) = (folder.path("ops.json"), folder.path("series.csv"));
    let args = ["plan", &ops, "--planner", "bestfit", "--series", &series, "-q"];
    assert_eq!(xmem(args).code, 0);
    let text = std::fs::read_to_string(&series).expect("written");
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let mut placements = std::collections::BTreeSet::new();
    for row in rows.records() {
        let row = row.expect("a row");
        placements.insert(row[0].to_owned());
        let number = |column: usize| row[column].parse::<f64>().expect("a number");
        assert_eq!(number(4), number(3) - number(2), "waste is top less load: {row:?}");
        assert!((0.0..=1.0).contains(&number(9)) && (0.0..=1.0).contains(&number(10)));
    }
    let placements: Vec<&str> = placements.iter().map(String::as_str).collect();
    assert_eq!(placements, ["native", "plan", "tf-bfc-growth"]);
}

#[test]
fn heap_maps_are_drawn_side_by_side() {
    let folder = Folder::new();
    folder.put("ops.json", &operations());
    let (ops, svg) = (folder.path("ops.json"), folder.path("heap.svg"));
    assert_eq!(xmem(["plan", &ops, "--planner", "bestfit", "--svg", &svg, "-q"]).code, 0);
    let text = std::fs::read_to_string(&svg).expect("written");
    let count = |part: &str| text.matches(part).count();
    assert_eq!((count("<svg"), count("</svg>")), (1, 1));
    assert_eq!(count("class=\"panel\""), 4, "two heap maps, each with a strip below");
    assert_eq!(count("(top) cannot use"), 2);
    assert_eq!(count("class=\"b c"), 8, "four blocks, planned and actual");
    assert_eq!(count("class=\"segment\""), 1, "20 MiB");
    assert!(count("planned by bestfit: 10.00 MiB") == 1 && count("20.00 MiB reserved") == 1);
}

#[test]
fn a_heap_map_of_many_blocks_says_what_it_leaves_out() {
    let row = |id: u32| format!("{id},{id},{},512\n", id + 3);
    let table: String =
        ["id,lower,upper,size\n".to_owned()].into_iter().chain((0..7000).map(row)).collect();
    let folder = Folder::new();
    folder.put("table.csv", table.as_bytes());
    let (table, svg) = (folder.path("table.csv"), folder.path("heap.svg"));
    assert_eq!(xmem(["plan", &table, "--planner", "bestfit", "--svg", &svg, "-q"]).code, 0);
    let text = std::fs::read_to_string(&svg).expect("written");
    assert_eq!(text.matches("1000 smaller blocks are not drawn").count(), 2);
    assert!(text.len() < 2 << 20);
}

/// The document of a run that follows a plan, checked.
fn run_document(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let document = ran.json();
    check(&serde_json::from_str(RUN).expect("schema"), &document).expect("valid");
    document
}

#[test]
fn the_same_list_follows_the_hints_of_its_plan() {
    let folder = Folder::new();
    folder.put("ops.json", &operations());
    let (ops, hints) = (folder.path("ops.json"), folder.path("hints.json"));
    let export =
        ["plan", &ops, "--scope", "all", "--planner", "bestfit", "--export-hints", &hints, "-q"];
    assert_eq!(xmem(export).code, 0);
    let written: Value =
        serde_json::from_slice(&std::fs::read(&hints).expect("written")).expect("JSON");
    check(&serde_json::from_str(HINTS).expect("schema"), &written).expect("valid");
    assert_eq!(
        (&written["peak_bytes"], &written["planner"]),
        (&json!(10 * MIB), &json!("bestfit"))
    );
    let sizes = written["iteration"].as_array().expect("requests").iter();
    let sizes: Vec<u64> =
        sizes.map(|request| request["size_bytes"].as_u64().expect("bytes")).collect();
    assert_eq!(sizes, [4, 2, 8, 5].map(|mib| mib * MIB));

    let document = run_document(&xmem(["simulate", &ops, "--plan", &hints, "--format", "json"]));
    let figures = ["driver_peak_bytes", "planned", "misses", "replans"].map(|key| &document[key]);
    assert_eq!(figures, [&json!(10 * MIB), &json!(4), &json!(0), &json!(0)]);
    let text = xmem(["simulate", &ops, "--plan", &hints]);
    assert!(
        text.stdout.starts_with(
            "4 of 4 requests at their planned address: 10.00 MiB in place of 20.00 MiB"
        )
    );
}

#[test]
fn a_request_that_the_plan_does_not_have_lies_in_the_memory_of_the_plan() {
    let alloc = |id: u32, mib: u64| json!({"op": "alloc", "id": id, "size": mib * MIB});
    let free = |id: u32| json!({"op": "free", "id": id});
    let list = |last: u64| json!([alloc(1, 4), free(1), alloc(2, last), free(2)]).to_string();
    let folder = Folder::new();
    folder.put("a.json", list(8).as_bytes());
    folder.put("b.json", list(12).as_bytes());
    folder.put("c.json", json!([alloc(1, 4)]).to_string().as_bytes());
    let [a, b, c] = ["a.json", "b.json", "c.json"].map(|name| folder.path(name));
    let against = |other: &str| {
        let args = ["plan", &a, "--planner", "bestfit", "--against", other, "--format", "json"];
        let document = run_document(&xmem(args));
        let keys = ["requests", "planned", "unknown", "fitted", "driver_peak_bytes"];
        keys.map(|key| document[key].as_u64().expect("a number"))
    };
    assert_eq!(against(&b), [2, 1, 1, 1, 12 * MIB]);
    assert_eq!(against(&c), [1, 1, 0, 0, 4 * MIB]);
}

#[test]
fn an_interrupted_plan_leaves_requests_to_the_allocator() {
    // Ticks 3 and 4 make and free the 8 MiB.
    let args = ["plan", "-", "--planner", "bestfit", "--interrupt", "3..5"];
    let ran = xmem_with_input(args, &operations());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let page = without_times(&ran.stdout);
    let (top, rest) = page.split_once("Memory of these blocks").expect("a heading");
    expect![[r#"
        PyTorch reserves 20.00 MiB; with the plan it is 27.00 MiB, 7.00 MiB planned and 20.00 MiB reserved
        for 1 block left out
          -: 3 of 4 blocks
          allocator: PyTorch 2.11, ascending addresses

    "#]]
    .assert_eq(top);
    let (_, section) = rest.split_once("Interrupted").expect("a heading");
    let (section, _) = section.split_once("\n\n").expect("another part");
    expect![[r#"
        Interrupted
          left out by         3..5
          left out            1 block, 8.00 MiB live at once; PyTorch reserves 20.00 MiB
          with the plan       27.00 MiB
          all blocks          4 blocks, 10.00 MiB live at once; PyTorch reserves 20.00 MiB
    "#]]
    .assert_eq(&format!("Interrupted{section}\n"));
    let args = args.into_iter().chain(["--format", "json", "--offsets"]);
    let document = valid(&xmem_with_input(args, &operations()));
    let names: Vec<&Value> =
        document["block_list"].as_array().expect("blocks").iter().map(|b| &b["name"]).collect();
    assert_eq!(names, ["1", "2", "4"]);
    let interrupted = &document["interrupted"];
    assert_eq!((&interrupted["blocks"], &interrupted["all_blocks"]), (&json!(1), &json!(4)));
    assert_eq!(interrupted["together_bytes"], 27 * MIB);
}

#[test]
fn a_plan_of_a_job_leaves_out_what_is_interrupted() {
    let trace = format!("{ROOT}/traces/lengths/cpu.json.zst");
    let folder = Folder::new();
    let hints = folder.path("hints.json");
    let args = ["plan", &trace, "--planner", "bestfit", "--interrupt", "data,forward,backward"];
    let against = args.into_iter().chain(["--against", &trace, "--export-hints", &hints]);
    let document = run_document(&xmem(against.chain(["--format", "json"])));
    assert!(document["outside"].as_u64() > document["planned"].as_u64(), "{document}");
    let written: Value =
        serde_json::from_slice(&std::fs::read(&hints).expect("written")).expect("JSON");
    check(&serde_json::from_str(HINTS).expect("schema"), &written).expect("valid");
    assert_eq!(written["interrupted_by"], json!(["data", "forward", "backward"]));
    let ticks = ["plan", &trace, "--interrupt", "0..9", "--export-hints", &hints];
    let ran = xmem(ticks);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("cannot be combined with --export-hints"), "{}", ran.stderr);
}

/// Plans of two iterations were of the first, without a word: a third of the requests of others had their address.
#[test]
fn a_plan_of_the_first_iteration_says_so() {
    let folder = Folder::new();
    let note = "note: the plan is of the first iteration, from which others differ: ";
    for (iterations, is_short) in [(1, true), (2, true), (3, false)] {
        folder.put("steps.json", &growing_trace(iterations));
        let (trace, hints) = (folder.path("steps.json"), folder.path("hints.json"));
        let ran = xmem(["plan", &trace, "--device", "a100-40g", "--export-hints", &hints]);
        assert_eq!(ran.stderr.contains(note), is_short, "{iterations}: {}", ran.stderr);
    }
}

/// `simulate --plan` left out what outlives an iteration, which no allocator can know when a request comes.
#[test]
fn a_plan_is_followed_without_hindsight() {
    let trace = format!("{ROOT}/traces/lengths/cpu.json.zst");
    let args = ["plan", &trace, "--planner", "bestfit", "--against", &trace, "--format", "json"];
    let document = run_document(&xmem(args));
    let number = |key: &str| document[key].as_u64().expect("a number");
    // All requests of the recording: those of the model, and of sequences of 128 and of 64 tokens, which take turns.
    assert_eq!(document["runs"].as_array().expect("runs").len(), 6);
    assert_eq!(number("requests"), number("planned") + number("outside") + number("misses"));
    assert!(number("planned") * 100 > number("requests") * 97, "{document}");
    assert!(number("driver_peak_bytes") < number("allocator_reserved_bytes"), "{document}");
}

#[test]
fn an_input_without_blocks_follows_no_plan() {
    let folder = Folder::new();
    folder.put("ops.json", &operations());
    folder.put("empty.csv", b"id,lower,upper,size\n");
    let [ops, empty] = ["ops.json", "empty.csv"].map(|name| folder.path(name));
    let ran = xmem(["plan", &ops, "--planner", "bestfit", "--against", &empty]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("has no blocks to plan"), "{}", ran.stderr);
}

#[test]
fn an_endless_file_of_zeros_is_no_input() {
    let ran = xmem(["plan", "/dev/zero"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("`/dev/zero` is not a profiler trace"), "{}", ran.stderr);
}

#[test]
fn what_is_no_plan_is_not_followed() {
    let folder = Folder::new();
    folder.put("ops.json", &operations());
    folder.put("hints.json", b"{\"schema\": \"xmem.plan/1\"}");
    let (ops, hints) = (folder.path("ops.json"), folder.path("hints.json"));
    let ran = xmem(["simulate", &ops, "--plan", &hints]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("is not a plan to be followed"), "{}", ran.stderr);
    let ran = xmem(["simulate", &ops, "--plan", &hints, "--format", "jsonl"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let request = |ordinal: u32, offset: u64| {
        json!({"ordinal": ordinal, "module": null, "op": "", "nth": ordinal, "least_bytes": 4, "size_bytes": 4,
            "arena": "iteration", "offset_bytes": offset})
    };
    let right = json!({"schema": "xmem.plan-hints/2", "input": "x", "scope": "all", "planner": "bestfit",
        "peak_bytes": 8, "lasting_bytes": 0, "mark": null, "warm_up": [],
        "iteration": [request(0, 0), request(1, 4)]});
    folder.put("hints.json", right.to_string().as_bytes());
    assert_eq!(xmem(["simulate", &ops, "--plan", &hints]).code, 0);
    for (pointer, value, message) in [
        ("/schema", json!("xmem.plan-hints/1"), "instead of xmem.plan-hints/2"),
        ("/peak_bytes", json!(3), "its peak is 3 B, but its requests need 8 B"),
        ("/scope", json!("some"), "its scope is `some`"),
        ("/interrupted_by", json!(["9..9"]), "`9..9` has no tick"),
        ("/iteration/1/ordinal", json!(7), "request 1 is out of order: expected ordinal 1"),
        ("/iteration/1/arena", json!("other"), "request 1 has an arena without an offset"),
        ("/iteration/1/offset_bytes", json!(null), "request 1 has an arena without an offset"),
        ("/iteration/1/least_bytes", json!(5), "request 1 is good for no size"),
        ("/iteration/1/offset_bytes", json!(u64::MAX), "request 1 ends beyond 2^63 bytes"),
    ] {
        let mut wrong = right.clone();
        if pointer == "/interrupted_by" {
            wrong["interrupted_by"] = value;
        } else {
            *wrong.pointer_mut(pointer).expect("there") = value;
        }
        folder.put("hints.json", wrong.to_string().as_bytes());
        let ran = xmem(["simulate", &ops, "--plan", &hints]);
        assert_eq!(ran.code, 3, "{pointer}");
        assert!(ran.stderr.contains(message), "{pointer}: {}", ran.stderr);
    }
}

/// A plan that is followed was made from a second reading of the input, and standard input was empty then.
#[test]
fn standard_input_is_read_once() {
    let folder = Folder::new();
    let hints = folder.path("hints.json");
    for input in [operations(), std::fs::read(trace("mlp_adam")).expect("a trace")] {
        let args = ["plan", "-", "--planner", "bestfit", "--export-hints", &hints, "-q"];
        let ran = xmem_with_input(args, &input);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let followed = ["simulate", "-", "--plan", &hints, "--format", "json"];
        let document = run_document(&xmem_with_input(followed, &input));
        assert_eq!(document["unknown"], 0, "{document}");
    }
}

/// Editors and spreadsheets write a byte order mark before text in UTF-8.
#[test]
fn a_byte_order_mark_does_not_hide_what_a_text_is() {
    for text in [
        "id,lower,upper,size\r\na,0,3,512\r\nb,1,2,512\r\n",
        r#"[{"op":"alloc","id":1,"size":512},{"op":"alloc","id":2,"size":512}]"#,
    ] {
        let marked = format!("\u{feff}{text}");
        let [plain, marked] = [text, &marked].map(|text| {
            let ran = xmem_with_input(["plan", "-", "--quiet"], text.as_bytes());
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            ran.stdout
        });
        assert!(plain.contains("what fits in 1.00 KiB (planned, proven optimal)"), "{plain}");
        assert_eq!(plain, marked);
    }
}

#[test]
fn what_cannot_be_planned_is_said() {
    for (input, args, code, message) in [
        ("id,lower,upper\n", &[][..], 3, "standard input is not a table of blocks"),
        ("id,lower,upper,size\n", &[], 3, "standard input has no blocks to plan"),
        (
            "id,lower,upper,size\na,0,3,4\nb,7,5,4\n",
            &[],
            3,
            "line 3: block `b` has an empty lifetime",
        ),
        ("\u{feff}id,lower,upper,size\n", &[], 3, "standard input has no blocks to plan"),
        (
            "[{\"op\":\"free\",\"id\":1}]",
            &[],
            3,
            "operation 0 of standard input, free 1, is invalid",
        ),
        ("id,lower,upper,size\na,0,1,4\n", &["--offsets"], 2, "--offsets needs --format json"),
        ("id,lower,upper,size\na,0,1,4\n", &["--planner", "best"], 2, "`best` is not a planner"),
        ("id,lower,upper,size\na,0,1,4\n", &["--interrupt", "3..3"], 2, "`3..3` has no tick"),
        (
            "id,lower,upper,size\na,0,1,4\n",
            &["--interrupt", "forwrd"],
            2,
            "--interrupt forwrd names no request of standard input",
        ),
        (
            "id,lower,upper,size\na,0,1,4\n",
            &["--interrupt", "0..9"],
            2,
            "--interrupt leaves out all blocks of standard input",
        ),
    ] {
        let args = ["plan", "-"].iter().chain(args);
        let ran = xmem_with_input(args, input.as_bytes());
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}
