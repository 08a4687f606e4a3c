//! `cargo xtask plans`: the plans of one iteration of every recorded trace, or of tables of blocks, as a table in
//! Markdown.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::program::{self, Profile};
use xmem_task::{Error, repo};

/// What to run.
#[derive(Debug)]
pub struct Options {
    /// Inputs of `xmem plan`; by default all traces of an iteration.
    pub inputs: Vec<PathBuf>,
    /// The planners, as `xmem plan` takes them.
    pub planner: String,
    /// The time of each planner, as `xmem plan` takes it.
    pub time: String,
    /// What is planned, as `xmem plan` takes it.
    pub scope: String,
    /// The program to ask; none builds it.
    pub program: Option<PathBuf>,
}

/// The figures of a row.
struct Plan {
    ratio: f64,
    is_optimal: bool,
}

/// Prints the table and its summary.
pub fn run(options: &Options) -> Result<(), Error> {
    let program = program::find(options.program.as_deref(), Profile::Dev)?;
    let inputs = if options.inputs.is_empty() { traces()? } else { options.inputs.clone() };
    println!(
        "| input | blocks | live at once | PyTorch reserved | planned | of bound | proven | seconds | planner |"
    );
    println!("|---|--:|--:|--:|--:|--:|---|--:|---|");
    let mut plans = Vec::new();
    for input in &inputs {
        if let Some(plan) = row(&program, input, options)? {
            plans.push(plan);
        }
    }
    let proven = plans.iter().filter(|plan| plan.is_optimal).count();
    let ratios = || plans.iter().map(|plan| plan.ratio);
    let worst = ratios().fold(1.0, f64::max);
    let mean = ratios().sum::<f64>() / plans.len().max(1) as f64;
    println!(
        "\n{} inputs: {proven} proven optimal, ratio to the bound {mean:.4} on average, {worst:.4} at worst",
        plans.len()
    );
    Ok(())
}

/// Plans an input and prints its row. None for one that cannot be planned, as an evaluation without iterations.
fn row(program: &Path, input: &Path, options: &Options) -> Result<Option<Plan>, Error> {
    let shown = input.strip_prefix(repo::root()).unwrap_or(input).display().to_string();
    let ran = Command::new(program)
        .arg("plan")
        .arg(input)
        .args(["--format", "json", "--planner", &options.planner])
        .args(["--time", &options.time, "--scope", &options.scope])
        .output()
        .map_err(Error::start("xmem plan"))?;
    if ran.stdout.is_empty() {
        let error = String::from_utf8_lossy(&ran.stderr);
        println!("| {shown} | {} |", error.lines().next().unwrap_or_default().trim());
        return Ok(None);
    }
    let answer: Value = serde_json::from_slice(&ran.stdout).map_err(Error::Answer)?;
    let best = &answer["best"]["planner"];
    let plans = answer["plans"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(plan) = plans.iter().find(|plan| plan["planner"] == *best) else { return Ok(None) };
    let ratio = plan["ratio"].as_f64().unwrap_or(f64::NAN);
    let is_optimal = plan["optimal"] == true;
    let seconds: f64 = plans.iter().filter_map(|plan| plan["seconds"].as_f64()).sum();
    println!(
        "| {shown} | {} | {} | {} | {} | {ratio:.5} | {} | {seconds:.3} | {} |",
        answer["blocks"],
        mib(&answer["lower_bound_bytes"]),
        mib(&answer["allocators"][0]["reserved_bytes"]),
        mib(&plan["peak_bytes"]),
        if is_optimal { "yes" } else { "no" },
        best.as_str().unwrap_or_default(),
    );
    Ok(Some(Plan { ratio, is_optimal }))
}

/// Bytes in MiB.
fn mib(bytes: &Value) -> String {
    format!("{:.2}", bytes.as_f64().unwrap_or(f64::NAN) / f64::from(1 << 20))
}

/// The recorded traces: `trace.json.zst` of each folder, and the networks.
fn traces() -> Result<Vec<PathBuf>, Error> {
    let folder = repo::root().join("traces");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(Error::file(&folder))? {
        let path = entry.map_err(Error::file(&folder))?.path();
        let trace = path.join("trace.json.zst");
        if trace.is_file() {
            found.push(trace);
        }
    }
    let networks = folder.join("networks");
    for entry in std::fs::read_dir(&networks).map_err(Error::file(&networks))? {
        let path = entry.map_err(Error::file(&networks))?.path();
        if path.to_string_lossy().ends_with(".json.zst") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
