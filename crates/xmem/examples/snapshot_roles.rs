//! How well roles of a memory snapshot agree with those of a trace of the same run on a GPU, allocation by allocation:
//!
//! ```sh
//! cargo run --release -p xmem --example snapshot_roles -- trace.json snapshot.pickle [trace2.json snapshot2.pickle …]
//! ```
//!
//! Of each role: the share of the bytes with it in the snapshot that have it in the trace (precision), and the share of
//! those in the trace that have it in the snapshot (recall). Pairs whose allocations differ are named and left out.
#![allow(clippy::print_stdout, reason = "a program with output")]

use std::collections::BTreeMap;
use std::error::Error;
use xmem::analyzer::{Block, Role};
use xmem::{Job, ReadOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let mut bytes: BTreeMap<(Role, Role), u64> = BTreeMap::new();
    let mut compared = 0;
    for pair in files.chunks_exact(2) {
        let [trace, snapshot] = pair else { continue };
        let of = |path: &String| Job::from_path(path, &ReadOptions::default());
        let (trace, snapshot) = (of(trace)?, of(snapshot)?);
        let (known, told) = (&trace.profile().blocks, &snapshot.profile().blocks);
        // A trace has the sizes of blocks, of which at most 1 MiB may be more than requested.
        let more = |pair: &(&Block, &Block)| pair.0.size.get().checked_sub(pair.1.size.get());
        let is_same = |pair: &(&Block, &Block)| more(pair).is_some_and(|more| more <= 1 << 20);
        let same = known.iter().zip(told).filter(is_same);
        if known.len() != told.len() || same.count() != known.len() {
            println!("{}: {} and {} allocations differ", pair[1], known.len(), told.len());
            continue;
        }
        compared += 1;
        for (known, told) in known.iter().zip(told) {
            *bytes.entry((known.role, told.role)).or_default() += told.size.get();
        }
    }
    println!("{compared} pairs");
    let sum = |with: &dyn Fn(Role, Role) -> bool| -> u64 {
        bytes.iter().filter(|((known, told), _)| with(*known, *told)).map(|(_, bytes)| bytes).sum()
    };
    let percent = |part: u64, of: u64| match of {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", part as f64 * 100.0 / of as f64),
    };
    for role in Role::ALL {
        let both = sum(&|known, told| known == role && told == role);
        let precision = percent(both, sum(&|_, told| told == role));
        let recall = percent(both, sum(&|known, _| known == role));
        println!("{:16} precision {precision:>8}  recall {recall:>8}", role.name());
    }
    for ((known, told), bytes) in bytes.iter().filter(|((known, told), _)| known != told) {
        println!(
            "  {} told as {}: {:.1} MiB",
            known.name(),
            told.name(),
            *bytes as f64 / 1_048_576.0
        );
    }
    Ok(())
}
