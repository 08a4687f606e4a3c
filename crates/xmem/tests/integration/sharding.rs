//! A rank replayed as one of a job of another number of ranks, judged by recordings with as many: PyTorch's CUDA build,
//! kernels stubbed.
#![expect(clippy::disallowed_methods, reason = "tests read recordings")]

use std::path::{Path, PathBuf};
use xmem::orchestrator::ChosenWhatIf;
use xmem::{Answer, Bytes, Estimate, EstimateError, find};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/sharding")
}

fn world_size(ranks: u32) -> ChosenWhatIf {
    ChosenWhatIf::new("world-size", &ranks.to_string()).expect("a what-if")
}

fn with_ranks(ranks: u32) -> Result<Answer, EstimateError> {
    let device = find("a100-40g").expect("known").clone();
    Estimate::builder(device)
        .what_if(world_size(ranks))
        .build()
        .path(folder().join("ranks8.json.zst"))
}

fn recorded(ranks: u32) -> (Bytes, Bytes) {
    let text = std::fs::read_to_string(folder().join("recorded.toml")).expect("readable");
    let table: toml::Table = text.parse().expect("TOML");
    let of = &table[&format!("ranks{ranks}")];
    let bytes = |key: &str| Bytes(of[key].as_integer().expect("bytes").unsigned_abs());
    (bytes("allocated"), bytes("reserved"))
}

#[test]
fn shards_have_the_sizes_that_they_have_among_as_many_ranks() {
    for ranks in [8, 32] {
        let answer = with_ranks(ranks).expect("an answer");
        assert_eq!(
            (answer.memory.peak.allocated, answer.memory.peak.reserved),
            recorded(ranks),
            "{ranks} ranks"
        );
        let rank = answer.rank.expect("a rank");
        assert_eq!((rank.rank, rank.world_size, rank.communicators), (0, ranks, Some(vec![ranks])));
    }
}

#[test]
fn machines_are_added_for_nccl() {
    let memory =
        |ranks| with_ranks(ranks).expect("an answer").budget.nccl().expect("NCCL").expected;
    assert!(memory(32) > memory(8));
}
