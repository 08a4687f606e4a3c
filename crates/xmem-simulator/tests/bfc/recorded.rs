//! The simulator against TensorFlow's own BFCAllocator: recorded request sequences must give the
//! same addresses, figures and chunks, one by one. See `tests/data/bfc/README.md` for their origin.
//!
//! A folder in `XMEM_BFC` is checked as well, if set.

#![expect(clippy::disallowed_methods, reason = "the test cases are files")]

use crate::regions;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use xmem_simulator::{
    AddressOrder, BfcAllocator, BfcConfig, BlockHandle, Device, DeviceConfig, FrameworkAllocator,
    MemoryLimit, RequestIndex,
};
use xmem_types::{Bytes, StreamId};

#[test]
fn recorded_sequences_match_tensorflow_step_by_step() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bfc");
    let mut cases: Vec<PathBuf> = [Some(own), std::env::var_os("XMEM_BFC").map(PathBuf::from)]
        .into_iter()
        .flatten()
        .flat_map(|dir| fs::read_dir(dir).expect("the folder is there"))
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "zst"))
        .collect();
    cases.sort();
    assert!(cases.len() >= 40, "the recorded sequences are missing");
    let (mut steps, mut failures) = (0, String::new());
    for path in &cases {
        let case = read(path);
        steps += case["steps"].as_array().expect("a list of steps").len();
        if let Some(difference) = compare(&case) {
            writeln!(failures, "{}: {difference}", path.display()).unwrap();
        }
    }
    assert!(steps >= 25_000, "only {steps} steps");
    assert!(failures.is_empty(), "\n{failures}");
}

fn read(path: &Path) -> Value {
    let packed = fs::read(path).expect("readable");
    let text = zstd::decode_all(&packed[..]).expect("zstd");
    serde_json::from_slice(&text).expect("JSON")
}

/// The first difference.
fn compare(case: &Value) -> Option<String> {
    let mut allocator = BfcAllocator::new(&config(case), Device::new(&device(case)), ());
    let mut handles: BTreeMap<u64, BlockHandle> = BTreeMap::new();
    for (row, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
        let at = RequestIndex(row);
        let id = number(&step[1]);
        let mut addr = Value::Null;
        if step[0] == "a" {
            let result = allocator.allocate(at, Bytes(number(&step[2])), StreamId(0));
            if let Ok(handle) = result {
                let handle = handle.expect("no size is zero");
                addr = allocator.block(handle).addr.0.into();
                handles.insert(id, handle);
            }
        } else {
            allocator.free(at, handles.remove(&id).expect("a chunk in use"));
        }
        let stats = allocator.tf_stats();
        let figures = [
            allocator.stats().num_device_free,
            stats.bytes_in_use.get(),
            stats.peak_bytes_in_use.get(),
            stats.largest_alloc_size.get(),
            stats.num_allocs,
            stats.pool_bytes.get(),
            stats.peak_pool_bytes.get(),
            allocator.next_region().get(),
        ];
        let mut got = vec![addr];
        got.extend(figures.map(Value::from));
        let want = step.as_array().expect("a step")[3..].to_vec();
        if want.len() > got.len() {
            got.push(chunks(&allocator));
        }
        if got != want {
            return Some(format!("step {row}:\n  TensorFlow {want:?}\n  simulator  {got:?}"));
        }
    }
    None
}

/// Every region: address, size, then its chunks' sizes, those of free ones negative.
fn chunks(allocator: &BfcAllocator) -> Value {
    let list = |(addr, chunks): (u64, Vec<(u64, Option<u64>)>)| {
        let size: u64 = chunks.iter().map(|(size, _)| size).sum();
        let signed = chunks.iter().map(|&(size, asked)| match asked {
            Some(_) => size.cast_signed(),
            None => -size.cast_signed(),
        });
        [addr.cast_signed(), size.cast_signed()].into_iter().chain(signed).collect::<Value>()
    };
    regions(allocator).into_iter().map(list).collect()
}

fn config(case: &Value) -> BfcConfig {
    let fraction = case["fragmentation_fraction"].as_f64().expect("a fraction");
    BfcConfig {
        limit: MemoryLimit::Exactly(Bytes(number(&case["limit"]))),
        allow_growth: case["allow_growth"] == true,
        garbage_collection: case["garbage_collection"] == true,
        fragmentation_fraction: (fraction > 0.0).then_some(fraction),
        coalesce_regions: case["coalesce"] == true,
    }
}

fn device(case: &Value) -> DeviceConfig {
    let capacity = number(&case["capacity"]);
    DeviceConfig {
        capacity: (capacity > 0).then_some(Bytes(capacity)),
        address_order: match case["order"].as_str() {
            Some("ascending") => AddressOrder::Ascending,
            Some("descending") => AddressOrder::Descending,
            order => panic!("unknown order {order:?}"),
        },
        ..DeviceConfig::default()
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}
