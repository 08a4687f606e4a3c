//! `cargo xtask offload`: the tables of docs/results/offloading.md, in Markdown. Each is made of answers of `xmem offload`,
//! whose command is printed above it.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use xmem_task::program::{self, Profile};
use xmem_task::{Error, repo};

/// The networks of the papers, by their traces, with the names and batches of the tables.
const NETWORKS: [(&str, &str); 9] = [
    ("alexnet", "AlexNet, 128"),
    ("vgg16", "VGG-16, 64"),
    ("googlenet", "GoogLeNet, 128"),
    ("inception_v3", "Inception-V3, 64"),
    ("inception_v4", "Inception-V4, 32"),
    ("resnet32", "ResNet-32, 100"),
    ("resnet32_bottleneck", "ResNet-32, bottlenecks, 100"),
    ("resnet50", "ResNet-50, 32"),
    ("resnet101", "ResNet-101, 32"),
];

/// Today's jobs, by their folders.
const JOBS: [&str; 6] = [
    "big_gpt2s_adam_b6",
    "big_opt125m_adamw_b12",
    "big_llama_bf16_adamw_b4",
    "big_qwen2_ampbf16_adamw_b4",
    "big_resnet50_adamw_b100",
    "vit_b_16_adamw",
];

/// The settings in which the networks are simulated.
const SETTINGS: [(&str, &[&str]); 4] = [
    (
        "TITAN X at 16 GB/s, the same tensors for all",
        &["--device-file", "traces/networks/titan-x.toml", "--pcie-gbps", "16"],
    ),
    (
        "the same in the setting of the paper: gradients preallocated, workspaces grown",
        &["--device-file", "traces/networks/titan-x.toml", "--pcie-gbps", "16", "--paper"],
    ),
    (
        "TITAN X at 16 GB/s, the tensors that each paper names",
        &["--device-file", "traces/networks/titan-x.toml", "--pcie-gbps", "16", "--move", "paper"],
    ),
    ("P100 at 12 GB/s, the same tensors for all", &["--device", "p100-16g", "--pcie-gbps", "12"]),
];

/// Prints the tables.
pub fn run(program: Option<&Path>) -> Result<(), Error> {
    let program = program::find(program, Profile::Dev)?;
    for (title, options) in SETTINGS {
        networks(&program, title, options)?;
    }
    jobs(&program)
}

fn networks(program: &Path, title: &str, options: &[&str]) -> Result<(), Error> {
    let policies = "serial,vdnn-all,superneurons,dymem,save-on-cpu";
    let placements = "pool-best-fit,gtbm";
    println!("## {title}\n");
    println!(
        "xmem offload traces/networks/*.json.zst {} --policy {policies} --placement {placements} --min-capacity\n",
        options.join(" ")
    );
    let mut tables = [
        "| smallest memory, MiB | none | vdnn-all | superneurons | dymem, pool | dymem, gtbm | serial, gtbm | save-on-cpu |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned(),
        "| step, ms | none | serial | vdnn-all | superneurons | dymem | throughput of dymem against vdnn-all | overlap: vdnn-all | dymem |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned(),
        "| live without a limit, MiB | none | vdnn-all | superneurons | dymem | serial | moved by vdnn-all | by dymem | GTBM against best fit: dymem | serial | pool of dymem |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned(),
    ];
    for (trace, name) in NETWORKS {
        let input = format!("traces/networks/{trace}.json.zst");
        let mut arguments = vec!["--policy", policies, "--placement", placements, "--min-capacity"];
        arguments.extend(options);
        let answer = ask(program, &input, &arguments)?;
        let of = |policy: &str, placement: &str| row(&answer, policy, placement);
        let best = |policy: &str| of(policy, "pool-best-fit");
        let smallest = |row: &Value| mib(&row["smallest_capacity_bytes"]);
        tables[0] += &format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} |\n",
            smallest(best("none")),
            smallest(best("vdnn-all")),
            smallest(best("superneurons")),
            smallest(best("dymem")),
            smallest(of("dymem", "gtbm")),
            smallest(of("serial", "gtbm")),
            smallest(best("save-on-cpu")),
        );
        let step = |policy: &str| number(&best(policy)["step_us"]);
        let time = |policy: &str| format!("{:.1}", step(policy) / 1e3);
        let overlap = |policy: &str| {
            format!("{:.0} %", 100.0 * number(&best(policy)["overlapped_us"]) / step(policy))
        };
        tables[1] += &format!(
            "| {name} | {} | {} | {} | {} | {} | {:+.0} % | {} | {} |\n",
            time("none"),
            time("serial"),
            time("vdnn-all"),
            time("superneurons"),
            time("dymem"),
            100.0 * (step("vdnn-all") / step("dymem") - 1.0),
            overlap("vdnn-all"),
            overlap("dymem"),
        );
        let live = |policy: &str| mib(&best(policy)["lower_bound_bytes"]);
        let moved = |policy: &str| mib(&best(policy)["to_host_bytes"]);
        let gain = |policy: &str| {
            let peak = |placement: &str| number(&of(policy, placement)["peak_bytes"]);
            format!("{:+.1} %", 100.0 * (peak("gtbm") / peak("pool-best-fit") - 1.0))
        };
        tables[2] += &format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            live("none"),
            live("vdnn-all"),
            live("superneurons"),
            live("dymem"),
            live("serial"),
            moved("vdnn-all"),
            moved("dymem"),
            gain("dymem"),
            gain("serial"),
            mib(&of("dymem", "gtbm")["pool_bytes"]),
        );
    }
    tables.iter().for_each(|table| println!("{table}"));
    Ok(())
}

fn jobs(program: &Path) -> Result<(), Error> {
    let policies = "dymem,save-on-cpu,offload-activations,checkpoint,host-optimizer";
    println!("## Today's jobs\n");
    println!(
        "xmem offload traces/JOB/trace.json.zst --device a100-40g --duplex --policy {policies} --budget 50%, then 25% and 10%\n"
    );
    println!(
        "| job | none | dymem | save-on-cpu | offload-activations 50 % | 25 % | 10 % | checkpoint 50 % | 25 % | 10 % | host-optimizer |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for job in JOBS {
        let input = format!("traces/{job}/trace.json.zst");
        let answers: Vec<Value> = ["50%", "25%", "10%"]
            .into_iter()
            .map(|budget| {
                let arguments =
                    ["--device", "a100-40g", "--duplex", "--policy", policies, "--budget", budget];
                ask(program, &input, &arguments)
            })
            .collect::<Result<_, Error>>()?;
        let none = number(&row(&answers[0], "none", "caching")["step_us"]);
        let cell = |answer: &Value, policy: &str| {
            let row = row(answer, policy, "caching");
            let waiting = number(&row["waiting_bytes"]);
            // More than its budget stays.
            let mark = if waiting > number(&answer["budget_bytes"]) { " *" } else { "" };
            let times = number(&row["step_us"]) / none;
            format!("{}, {times:.2}{mark}", mib(&row["peak_bytes"]))
        };
        let mut cells = vec![mib(&row(&answers[0], "none", "caching")["peak_bytes"])];
        cells.extend(["dymem", "save-on-cpu"].map(|policy| cell(&answers[0], policy)));
        for policy in ["offload-activations", "checkpoint"] {
            cells.extend(answers.iter().map(|answer| cell(answer, policy)));
        }
        cells.push(cell(&answers[0], "host-optimizer"));
        println!("| {job} | {} |", cells.join(" | "));
    }
    println!("\nMiB that PyTorch's allocator reserves, and the time of a step in units of none.");
    Ok(())
}

fn ask(program: &Path, input: &str, arguments: &[&str]) -> Result<Value, Error> {
    let ran = Command::new(program)
        .current_dir(repo::root())
        .args(["offload", input, "--format", "json"])
        .args(arguments)
        .output()
        .map_err(Error::start("xmem offload"))?;
    serde_json::from_slice(&ran.stdout).map_err(Error::Answer)
}

fn row<'a>(answer: &'a Value, policy: &str, placement: &str) -> &'a Value {
    let rows = answer["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = rows.iter().find(|row| row["policy"] == policy && row["placement"] == placement);
    found.unwrap_or(&Value::Null)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Bytes in MiB.
fn mib(bytes: &Value) -> String {
    let mib = number(bytes) / f64::from(1 << 20);
    let text = format!("{mib:.0}");
    match text.len() {
        4.. if mib < 1e6 => format!("{},{}", &text[..text.len() - 3], &text[text.len() - 3..]),
        _ => text,
    }
}
