//! `xmem eval`, as far as it needs no PyTorch: what is wrong with inputs, and estimates that others published.

use crate::job::Folder;
use crate::profile::flat;
use crate::schema_check::check;
use crate::shell::{Ran, command, xmem};
use expect_test::expect;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.eval.1.schema.json");
const PAPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/paper");

const MATRIX: &str = "\
title = 'A network'
[[jobs]]
family = 'cnn'
command = ['python3', 'train.py', '{model}', '{batch}']
factors = { model = ['ResNet101'], batch = [100, 200], device = ['rtx3060-12g'] }
";

/// Two runs of the xMem authors, and what the files of these runs say about the errors: `evaluation_result.json` of
/// plot/data/001-Anova/CNN/001/ConvNeXtBase_SGD_300_1_8ef7 and ConvNeXtTiny_Adam_300_1_7972 of Stone-ResearchLife/xMem.
const READINGS: &str = "\
model,batch,device,peak_bytes,out_of_memory,original.memory_bytes,original.out_of_memory,original.second_out_of_memory,original.second_error,original.runtime_s,dnnmem.memory_bytes,dnnmem.out_of_memory,dnnmem.second_out_of_memory
ConvNeXtBase,300,rtx3060-12g,9984540672,false,10278141952,false,false,0.01890359168241966,20.848629785,6872367104,false,true
ConvNeXtTiny,300,rtx3060-12g,4846518272,false,4989124608,false,false,0.012981393336218087,10.673160448,3523215360,false,true
";

fn folder() -> Folder {
    let folder = Folder::empty();
    folder.put("matrix.toml", MATRIX.as_bytes());
    folder.put("runs.csv", READINGS.as_bytes());
    folder
}

fn eval(folder: &Folder, args: &[&str]) -> Ran {
    let args: Vec<String> = args
        .iter()
        .map(|arg| {
            if folder.names().iter().any(|name| name == arg) {
                folder.path(arg)
            } else {
                (*arg).to_owned()
            }
        })
        .collect();
    xmem(["eval".to_owned()].iter().chain(&args))
}

#[test]
fn published_estimates_are_judged_by_the_equations_of_the_paper() {
    let folder = folder();
    let matrix = MATRIX.replace("'ResNet101'", "'ConvNeXtBase', 'ConvNeXtTiny'");
    folder.put("matrix.toml", matrix.as_bytes());
    let args = ["matrix.toml", "--readings", "runs.csv", "--estimators", "original,dnnmem"];
    let ran = eval(&folder, &[&args[..], &["--format", "json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let document = ran.json();
    let of_job = |job: usize, estimator: &str, name: &str| {
        document["jobs"][job]["estimates"][estimator][name].clone()
    };
    // As the authors' files have them.
    assert_eq!(of_job(0, "original", "signed_error"), 0.029_405_587_061_541_692);
    assert_eq!(of_job(0, "dnnmem", "signed_error"), -0.311_699_222_852_341_9);
    assert_eq!(of_job(1, "original", "signed_error"), 0.029_424_491_562_094_33);
    assert_eq!(of_job(1, "dnnmem", "usable"), false);
    let all = &document["estimators"]["original"]["all"];
    assert_eq!((&all["pef"], &all["runs"]), (&0.0.into(), &2.into()));
    assert_eq!(all["mre"], (0.018_903_591_682_419_66 + 0.012_981_393_336_218_087) / 2.0);
    assert_eq!(document["estimators"]["dnnmem"]["all"]["pef"], 1.0);
    assert!(!folder.names().iter().any(|name| name.ends_with(".store")), "nothing was recorded");
    let brief = eval(&folder, &[&args[..], &["--quiet"]].concat());
    expect![[r#"
        dnnmem: 2 runs, median error 29.2 %
        original: 2 runs, median error 2.9 %
    "#]]
    .assert_eq(&brief.stdout);
    for (format, part) in
        [("csv", "batch,device"), ("markdown", "| original | all | 2 |"), ("html", "<svg")]
    {
        let ran = eval(&folder, &[&args[..], &["--format", format]].concat());
        assert!(ran.code == 0 && ran.stdout.contains(part), "{format}: {}", ran.stdout);
    }
    let table = folder.path("runs.parquet");
    let ran = eval(&folder, &[&args[..], &["--format", "parquet", "-o", &table]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let table = std::fs::File::open(table).expect("a table");
    let table = SerializedFileReader::new(table).expect("a Parquet file");
    let rows: Vec<_> = table.get_row_iter(None).expect("rows").map(Result::unwrap).collect();
    let errors = rows.iter().map(|row| row.get_column_iter().find(|c| c.0 == "signed_error"));
    let errors: Vec<&Field> = errors.map(|error| error.expect("a column").1).collect();
    assert_eq!(errors[1], &Field::Double(0.029_405_587_061_541_692));
    assert_eq!(errors.len(), 4);
}

#[test]
fn what_is_wrong_is_named() {
    let folder = folder();
    folder.put("broken.csv", b"model,peak_bytes\nVGG16,1\n");
    folder.put("device.toml", MATRIX.replace("rtx3060-12g", "rtx9999").as_bytes());
    for (args, code, message) in [
        (&["nowhere.toml"][..], 3, "cannot read `nowhere.toml`"),
        (&["runs.csv"], 3, "is not a matrix of jobs"),
        (&["matrix.toml", "--readings", "broken.csv"], 3, "it has no column `out_of_memory`"),
        (
            &["matrix.toml", "--results", "runs.csv"],
            3,
            "is not the table of an evaluation: Parquet error",
        ),
        (&["matrix.toml", "--results", "nowhere.parquet"], 3, "cannot read `nowhere.parquet`"),
        (&["matrix.toml", "--only", "model=VGG16"], 2, "no job has model=VGG16"),
        (&["matrix.toml", "--only", "model"], 2, "expected a factor and a value"),
        (&["matrix.toml", "--estimators", "llmem"], 2, "unknown estimator `llmem`"),
        (&["matrix.toml", "--shard", "4/3"], 2, "parts are counted from 1 to 3"),
        (&["matrix.toml", "--without-recording"], 3, "contains no recording of the 2 jobs"),
        (&["matrix.toml", "--on", "slurm", "--shards", "4"], 2, "needs a store that all machines"),
        (&["device.toml", "--without-recording"], 2, "rtx9999"),
    ] {
        let ran = eval(&folder, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{args:?}: {}", ran.stderr);
        assert!(flat(&ran).contains(message), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_script_that_fails_is_a_job_that_is_not_evaluated() {
    let folder = folder();
    folder.put("train.py", b"raise SystemExit('no such model')\n");
    let ran = eval(&folder, &["matrix.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.stderr);
    assert!(flat(&ran).contains("none of the 2 jobs could be evaluated"), "{}", ran.stderr);
}

#[test]
fn a_job_script_calls_each_part() {
    let folder = folder();
    let store = folder.path("store");
    let args =
        ["matrix.toml", "--on", "slurm", "--shards", "8", "--store", &store, "--sample", "5"];
    let ran = eval(&folder, &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let expected = format!(
        "    xmem eval {} --store {store} --sample 5 --seed 0 --jobs 1 --shard \"$SLURM_ARRAY_TASK_ID/8\" && exit\n",
        folder.path("matrix.toml")
    );
    assert!(ran.stdout.contains(&expected), "{}", ran.stdout);
    assert!(ran.stdout.contains("#SBATCH --array=1-8\n"), "{}", ran.stdout);
}

/// A folder with a matrix whose estimator prints a MiB for each sample of the batch, and notes its calls in `calls`.
fn counting() -> Folder {
    let folder = Folder::empty();
    folder.put("calls", b"");
    let calls = folder.path("calls");
    let script = format!("echo $1 >> '{calls}'\necho $(($1 * 1048576))\n");
    folder.put("estimate.sh", script.as_bytes());
    let matrix = "[estimators.ours]\ncommand = ['sh', 'estimate.sh', '{batch}']\n\
        [[jobs]]\nfamily = 'cnn'\ncommand = ['true', '{batch}']\nfactors = { batch = [1], device = ['t4-16g'] }\n";
    folder.put("matrix.toml", matrix.as_bytes());
    folder
}

/// Both parts run at the same time; the answer comes from what they left in the store.
#[test]
fn parts_share_a_store_and_no_estimate_is_made_twice() {
    let folder = counting();
    let rows: String =
        (1..=9).map(|batch| format!("{batch},t4-16g,{},false\n", batch << 20)).collect();
    folder.put("runs.csv", format!("batch,device,peak_bytes,out_of_memory\n{rows}").as_bytes());
    let args = ["matrix.toml", "--readings", "runs.csv", "--without-second-round"];
    let parts: Vec<Ran> = std::thread::scope(|scope| {
        let threads = ["1/2", "2/2"].map(|part| {
            let (folder, args) = (&folder, [&args[..], &["--shard", part]].concat());
            scope.spawn(move || eval(folder, &args))
        });
        threads.into_iter().map(|thread| thread.join().expect("it runs")).collect()
    });
    for (part, jobs) in parts.iter().zip([5, 4]) {
        assert_eq!((part.code, part.stdout.as_str()), (0, ""), "{}", part.stderr);
        assert!(part.stderr.contains(&format!("{jobs} of {jobs} jobs are in")), "{}", part.stderr);
    }
    let ran = eval(&folder, &[&args[..], &["--without-recording", "-q"]].concat());
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "ours: 9 runs, median error 0.0 %\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(folder.read("calls").lines().count(), 9);
}

/// What a table has is not made again, and what it lacks is; the answer is that of the whole.
#[test]
fn answers_of_earlier_evaluations_are_continued() {
    let folder = counting();
    let runs = |batches: std::ops::RangeInclusive<u64>| {
        let rows = batches.map(|batch| format!("{batch},t4-16g,{},false\n", batch << 21));
        format!("batch,device,peak_bytes,out_of_memory\n{}", rows.collect::<String>())
    };
    let answer = |store: &str, more: &[&str]| {
        let store = folder.path(store);
        let args = ["matrix.toml", "--without-second-round", "--readings", "runs.csv", "--store"];
        let ran = eval(&folder, &[&args[..], &[&store], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran
    };
    folder.put("runs.csv", runs(1..=3).as_bytes());
    let table = folder.path("three.parquet");
    answer("store", &["--format", "parquet", "-o", &table]);
    folder.put("runs.csv", runs(1..=5).as_bytes());
    let whole = answer("store", &["--format", "csv"]);
    folder.put("calls", b"");
    let continued = answer("other", &["--results", "three.parquet", "--format", "csv"]);
    let without_times = |ran: &Ran| {
        let rows =
            ran.stdout.lines().map(|row| row.rsplit_once(',').expect("columns").0.to_owned());
        rows.collect::<Vec<_>>()
    };
    assert_eq!(without_times(&continued), without_times(&whole));
    let mut called: Vec<String> = folder.read("calls").lines().map(str::to_owned).collect();
    called.sort();
    assert_eq!(called, ["4", "5"]);
    let alone = ["--results", "three.parquet", "--without-recording", "-q"];
    assert_eq!(answer("none", &alone).stdout, "ours: 3 runs, median error 50.0 %\n");
}

/// The truth of a job is the peak of its memory snapshot.
#[test]
fn snapshots_are_the_truth_of_their_jobs() {
    let folder = Folder::empty();
    let snapshot =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../xmem-eval/tests/data/mlp_adam.pickle.zst");
    std::fs::copy(snapshot, folder.path("mlp-8.pickle.zst")).expect("a snapshot");
    let matrix = "truth = { snapshot = '{model}-{batch}.pickle.zst' }\n\
        [estimators.ours]\ncommand = ['echo', '262144000']\n\
        [[jobs]]\nfamily = 'other'\ncommand = ['true', '{model}', '{batch}']\n\
        factors = { model = ['mlp'], batch = [8, 16], device = ['t4-16g'] }\n";
    folder.put("matrix.toml", matrix.as_bytes());
    let args = ["matrix.toml", "--without-second-round", "--format", "json"];
    let ran = eval(&folder, &args);
    let document = ran.json();
    // 250 MiB, as `xmem snapshot replay` says. Batch 16 has no snapshot.
    assert_eq!((ran.code, &document["truth"]), (4, &"snapshots".into()));
    assert_eq!(document["jobs"][0]["peak_bytes"], 250 << 20);
    assert_eq!(document["jobs"][0]["estimates"]["ours"]["signed_error"], 0.0);
    let reason = document["failures"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("mlp-16.pickle.zst"), "{reason}");
    folder.put("matrix.toml", matrix.replace("{batch}.pickle", "{lr}.pickle").as_bytes());
    let ran = eval(&folder, &args);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(flat(&ran).contains("has {lr}, which is not one of their factors"), "{}", ran.stderr);
}

/// A library in place of NVIDIA's, whose GPU uses as much memory as a file says.
const MANAGEMENT_LIBRARY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_t;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int result) { return "fake"; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = (void *)1;
    return index == 1 ? 0 : 2;
}
int nvmlDeviceGetMemoryInfo_v2(void *device, memory_t *memory) {
    FILE *file = fopen(getenv("XMEM_TEST_USED"), "r");
    memory->total = 1ULL << 34;
    memory->used = memory->reserved = 0;
    int count = file ? fscanf(file, "%llu", &memory->used) : 0;
    if (file) fclose(file);
    memory->free = memory->total - memory->used;
    return count == 1 ? 0 : 999;
}
"#;

/// The most of the samples less the one before the job; what the job writes beside itself is kept out of the folder.
#[cfg(target_os = "linux")]
#[test]
fn a_gpu_is_sampled_while_the_job_runs() {
    let folder = Folder::empty();
    folder.put("nvml.c", MANAGEMENT_LIBRARY.as_bytes());
    let library = folder.path("libnvidia-ml.so.1");
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o", &library, &folder.path("nvml.c")])
        .status();
    assert!(built.expect("a C compiler").success());
    let used = tempfile::NamedTempFile::new().expect("a file");
    let script = "\
        put() { echo $1 > \"$XMEM_TEST_USED.new\"; mv \"$XMEM_TEST_USED.new\" \"$XMEM_TEST_USED\"; sleep 0.1; }\n\
        echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES > checkpoint\n\
        case $1 in\n\
        8) put 5242880; put 12582912; put 2097152;;\n\
        16) put 9437184; echo 'torch.OutOfMemoryError: CUDA out of memory.' >&2; put 2097152; exit 1;;\n\
        *) put 2097152; echo 'no such batch' >&2; exit 3;;\n\
        esac\n";
    folder.put("train.sh", script.as_bytes());
    let matrix = "truth = { gpu = 1 }\n[estimators.ours]\ncommand = ['echo', '10485760']\n\
        [[jobs]]\nfamily = 'other'\ncommand = ['sh', 'train.sh', '{batch}']\n\
        factors = { batch = [8, 16, 32], device = ['t4-16g'] }\n";
    folder.put("matrix.toml", matrix.as_bytes());
    std::fs::write(used.path(), "2097152").expect("it can be written");
    let run = || {
        let matrix = folder.path("matrix.toml");
        let args = ["eval", &matrix, "--without-second-round", "--format", "json"];
        let mut command = command(args);
        command.env("LD_LIBRARY_PATH", folder.path(".")).env("XMEM_TEST_USED", used.path());
        Ran::from(command.output().expect("runs"))
    };
    let ran = run();
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let document = ran.json();
    assert_eq!(document["truth"], "gpu");
    let job = |at: usize, name: &str| document["jobs"][at][name].clone();
    assert_eq!((job(0, "peak_bytes"), job(0, "out_of_memory")), ((10 << 20).into(), false.into()));
    assert_eq!((job(1, "peak_bytes"), job(1, "out_of_memory")), ((7 << 20).into(), true.into()));
    let reason = document["failures"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("exit status: 3: no such batch"), "{reason}");
    assert!(!folder.names().iter().any(|name| name == "checkpoint"), "it is kept out");
    // Runs are kept: only the one that failed runs again.
    let again = run();
    assert!(again.stderr.contains("10.00 MiB"), "{}", again.stderr);
    folder.put(
        "matrix.toml",
        matrix.replace("gpu = 1", "gpu = 2").replace("[8, 16, 32]", "[7]").as_bytes(),
    );
    let ran = run();
    assert!(flat(&ran).contains("the memory of GPU 2 cannot be read"), "{}", ran.stderr);
}

/// The original's median errors and failures, over the readings in the repository; the paper has 3.6 % and 8.9 % over all of
/// its runs (the table "Summary of All Experimental Results" of its authors' notebook).
#[test]
fn the_readings_of_the_paper_give_its_figures() {
    let (matrix, readings) = (format!("{PAPER}/xmem.toml"), format!("{PAPER}/readings.csv"));
    let results = format!("{PAPER}/results.parquet");
    let ran = xmem([
        "eval",
        &matrix,
        "--readings",
        &readings,
        "--results",
        &results,
        "--without-recording",
        "--estimators",
        "xmem,xmem-original,dnnmem,schedtune,llmem",
        "--store",
        "/nonexistent/store",
        "--format",
        "json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let document: Value = ran.json();
    let schema: Value = serde_json::from_str(SCHEMA).expect("a schema");
    check(&schema, &document).expect("the schema holds");
    let figure = |estimator: &str, family: &str, name: &str| {
        let value = &document["estimators"][estimator][family][name];
        (value.as_f64().expect("a figure") * 1000.0).round() / 1000.0
    };
    let figures =
        |estimator, family| ["median_error", "pef"].map(|name| figure(estimator, family, name));
    assert_eq!(figures("xmem-original", "cnn"), [0.024, 0.021]);
    assert_eq!(figures("xmem-original", "transformer"), [0.030, 0.151]);
    assert_eq!(figures("dnnmem", "cnn"), [0.177, 0.585]);
    assert_eq!(figures("schedtune", "cnn"), [0.149, 0.326]);
    // What docs/results/xmem-paper.md has.
    assert_eq!(figures("xmem", "cnn"), [0.019, 0.0]);
    assert_eq!(figures("xmem", "transformer"), [0.003, 0.005]);
    assert_eq!(figures("xmem", "large"), [0.006, 0.0]);
}
