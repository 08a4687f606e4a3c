//! The simulator against PyTorch's own allocator: recorded request sequences must give the same
//! addresses, figures, layouts and events, one by one. See `data/README.md` for their origin.
//!
//! Directories in `XMEM_SEQUENCES` and `XMEM_JOBS` are checked as well, if set.

#![expect(clippy::disallowed_methods, reason = "the test cases are files")]

use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use xmem_simulator::{
    AddressOrder, AllocatorConfig, BlockHandle, CachingAllocator, Device, DeviceConfig, Event,
    EventAction, FrameworkAllocator, PoolKind, PowerOfTwoDivisions, RequestIndex, Stat, replay,
};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};

#[test]
fn generated_sequences_match_pytorch_op_by_op() {
    let cases = cases("sequences", "XMEM_SEQUENCES");
    assert!(cases.len() >= 25, "the recorded sequences are missing");
    let mut failures = String::new();
    for path in cases {
        let case = read(&path);
        let Some(config) = config(case["conf"].as_str().expect("conf is text")) else { continue };
        let found = compare_sequence(&case, &config);
        if !found.is_empty() {
            let first = &found[0];
            let count = found.len();
            writeln!(failures, "{}: {count} differences, first: {first}", path.display()).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn training_jobs_match_pytorch_address_by_address() {
    let cases = cases("jobs", "XMEM_JOBS");
    assert!(cases.len() >= 4, "the recorded jobs are missing");
    let mut failures = String::new();
    for path in cases {
        let found = compare_job(&read(&path));
        if !found.is_empty() {
            let first = &found[0];
            let count = found.len();
            writeln!(failures, "{}: {count} differences, first: {first}", path.display()).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

fn cases(folder: &str, more: &str) -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let mut paths: Vec<PathBuf> = [Some(own), std::env::var_os(more).map(PathBuf::from)]
        .into_iter()
        .flatten()
        .flat_map(|dir| fs::read_dir(dir).expect("the folder is there"))
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "zst"))
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Value {
    let packed = fs::read(path).expect("readable");
    let json = zstd::decode_all(&packed[..]).expect("zstd");
    serde_json::from_slice(&json).expect("JSON")
}

/// The option string of a sequence; `None` if it uses what the simulator does not have.
fn config(text: &str) -> Option<AllocatorConfig> {
    let mut config = AllocatorConfig::default();
    let mut rest = text;
    while !rest.is_empty() {
        let (key, after) = rest.split_once(':').expect("key:value");
        let list = after.starts_with('[');
        let end = if list { after.find(']').map(|i| i + 1) } else { after.find(',') };
        let (value, tail) = after.split_at(end.unwrap_or(after.len()));
        rest = tail.trim_start_matches(',');
        let mib = || Bytes::mib(value.parse().expect("a number"));
        match key {
            "max_split_size_mb" => config.max_split_size = Some(mib()),
            "max_non_split_rounding_mb" => config.max_non_split_rounding = mib(),
            "roundup_power2_divisions" => config.roundup_power2_divisions = divisions(value),
            // Collects nothing unless a memory fraction is set, which no sequence does.
            "garbage_collection_threshold" => {}
            _ => return None,
        }
    }
    Some(config)
}

fn divisions(value: &str) -> PowerOfTwoDivisions {
    let Some(list) = value.strip_prefix('[') else {
        return PowerOfTwoDivisions([value.parse().expect("a number"); 16]);
    };
    let mut table = [0; 16];
    let mut last = None;
    for entry in list.trim_end_matches(']').split(',') {
        let (key, value) = entry.split_once(':').expect("key:value");
        let value = value.parse().expect("a number");
        if key == ">" {
            table[last.map_or(0, |l: usize| l + 1)..].fill(value);
        } else {
            let bucket = key.parse::<u64>().expect("MiB").ilog2().min(15) as usize;
            let from = if last.is_none() { 0 } else { bucket };
            table[from..=bucket].fill(value);
            last = Some(bucket);
        }
    }
    PowerOfTwoDivisions(table)
}

fn int(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn stream(value: &Value) -> StreamId {
    StreamId(u32::try_from(int(value)).expect("a small number"))
}

fn compare_sequence(case: &Value, config: &AllocatorConfig) -> Vec<String> {
    let capacity = case["capacity"].as_u64().map(Bytes);
    let device =
        DeviceConfig { capacity, taken: Bytes::ZERO, address_order: AddressOrder::Ascending };
    let mut allocator = CachingAllocator::new(config, Device::new(&device), Vec::<Event>::new());
    let mut live: HashMap<u64, BlockHandle> = HashMap::new();
    let mut found = Vec::new();
    let ops = case["ops"].as_array().expect("ops");
    let results = case["results"].as_array().expect("results");
    for (i, (op, want)) in ops.iter().zip(results).enumerate() {
        let at = RequestIndex(i);
        let mut addr = None;
        let mut failed = false;
        match op["op"].as_str().expect("op") {
            "alloc" => match allocator.allocate(at, Bytes(int(&op["size"])), stream(&op["stream"]))
            {
                Ok(Some(handle)) => {
                    live.insert(int(&op["id"]), handle);
                    addr = Some(allocator.block(handle).addr.0 - base(&allocator));
                }
                Ok(None) => {}
                Err(_) => failed = true,
            },
            "free" => {
                if let Some(handle) = live.remove(&int(&op["id"])) {
                    allocator.free(at, handle);
                }
            }
            "empty_cache" => allocator.release_cached(at),
            other => panic!("unknown op {other}"),
        }
        let mut check = |what: &str, got: Value, want: &Value| {
            if got != *want {
                found.push(format!("op {i} {op}: {what} is {got}, PyTorch has {want}"));
            }
        };
        let stats = allocator.stats();
        check("addr", addr.into(), &want["addr"]);
        check("oom", failed.into(), want.get("oom").unwrap_or(&false.into()));
        for (name, got) in [
            ("reserved", stats.reserved_bytes.all.current.get()),
            ("allocated", stats.allocated_bytes.all.current.get()),
            ("active", stats.active_bytes.all.current.get()),
            ("requested", stats.requested_bytes.all.current.get()),
            ("inactive_split", stats.inactive_split_bytes.all.current.get()),
            ("peak_reserved", stats.reserved_bytes.all.peak.get()),
            ("peak_allocated", stats.allocated_bytes.all.peak.get()),
            ("segments_n", stats.segment.all.current),
            ("retries", stats.num_alloc_retries),
            ("ooms", stats.num_ooms),
        ] {
            check(name, got.into(), &want[name]);
        }
        if let Some(free) = allocator.device().free_bytes() {
            check("cuda_free", free.get().into(), &want["cuda_free"]);
        }
        if let Some(segments) = want.get("segments") {
            check("segments", layout(&allocator), &without_stale_requests(segments));
        }
    }
    let base = base(&allocator);
    let events: Vec<Value> = allocator
        .observer()
        .iter()
        .map(|e| {
            let addr = (e.action != EventAction::Oom).then(|| e.addr.0 - base);
            serde_json::json!({"action": e.action.name(), "addr": addr, "size": e.size.get(), "stream": e.stream.0})
        })
        .collect();
    let trace = case["trace"].as_array().expect("trace");
    for (i, want) in trace.iter().enumerate() {
        if events.get(i) != Some(want) {
            found.push(format!("event {i}: {:?}, PyTorch has {want}", events.get(i)));
        }
    }
    if events.len() != trace.len() {
        found.push(format!("{} events, PyTorch has {}", events.len(), trace.len()));
    }
    found
}

/// The address that the recordings count from: the first segment's.
fn base<A: FrameworkAllocator>(allocator: &A) -> u64 {
    allocator.segments().first().map_or(0, |segment| segment.addr.0)
}

fn layout<A: FrameworkAllocator>(allocator: &A) -> Value {
    let base = base(allocator);
    let blocks = allocator.layout();
    let mut segments: Vec<_> =
        allocator.segments().iter().enumerate().filter(|(_, s)| s.died.is_none()).collect();
    segments.sort_by_key(|(_, s)| s.addr);
    segments
        .into_iter()
        .map(|(row, s)| {
            let blocks: Vec<Value> = blocks
                .iter()
                .filter(|b| b.segment.index() == row)
                .map(|b| match b.requested {
                    Some(requested) => {
                        serde_json::json!([b.size.get(), requested.get(), "active_allocated"])
                    }
                    None => serde_json::json!([b.size.get(), 0, "inactive"]),
                })
                .collect();
            serde_json::json!({
                "addr": s.addr.0 - base,
                "size": s.size.get(),
                "stream": s.stream.0,
                "pool": if s.pool == PoolKind::Small { "small" } else { "large" },
                "expandable": false,
                "blocks": blocks,
            })
        })
        .collect()
}

/// PyTorch leaves the last request's size in free blocks; it means nothing.
fn without_stale_requests(segments: &Value) -> Value {
    let mut segments = segments.clone();
    for segment in segments.as_array_mut().expect("segments") {
        for block in segment["blocks"].as_array_mut().expect("blocks") {
            if block[2] == "inactive" {
                block[1] = 0.into();
            }
        }
    }
    segments
}

fn compare_job(case: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let requests: Vec<Request> = case["ops"]
        .as_array()
        .expect("ops")
        .iter()
        .map(|op| Request {
            block: BlockId(u32::try_from(int(&op[0])).expect("a small number")),
            kind: match op.get(1) {
                Some(size) => RequestKind::Alloc { size: Bytes(int(size)), stream: stream(&op[2]) },
                None => RequestKind::Free,
            },
        })
        .collect();
    let config = AllocatorConfig::default();
    let device = DeviceConfig::default();
    let mut allocator = CachingAllocator::new(&config, Device::new(&device), Vec::<Event>::new());
    let mut live = HashMap::new();
    for (i, request) in requests.iter().enumerate() {
        let at = RequestIndex(i);
        match request.kind {
            RequestKind::Alloc { size, stream } => {
                let handle = allocator.allocate(at, size, stream).expect("no limit");
                live.insert(request.block, handle.expect("not zero"));
            }
            RequestKind::Free => {
                allocator.free(at, live.remove(&request.block).expect("allocated before"));
            }
        }
    }
    let base = base(&allocator);
    let events = allocator.observer();
    let want = case["events"].as_array().expect("events");
    if events.len() != want.len() {
        found.push(format!("{} events, PyTorch has {}", events.len(), want.len()));
    }
    for (i, (e, want)) in events.iter().zip(want).enumerate() {
        let addr = e.addr.0.cast_signed() - base.cast_signed();
        let got = serde_json::json!([e.action.name(), addr, e.size.get(), e.stream.0]);
        if got != *want {
            found.push(format!("event {i}: {got}, PyTorch has {want}"));
        }
    }
    let stats = replay(&requests, &config, &device).stats;
    let recorded = &case["memory_stats"];
    let mut check = |name: &str, stat: Stat<u64>| {
        for (part, got) in [
            ("current", stat.current),
            ("peak", stat.peak),
            ("allocated", stat.allocated),
            ("freed", stat.freed),
        ] {
            let want = &recorded[format!("{name}.{part}")];
            if *want != got {
                found.push(format!("{name}.{part} is {got}, PyTorch has {want}"));
            }
        }
    };
    let plain = |s: Stat<Bytes>| Stat {
        current: s.current.get(),
        peak: s.peak.get(),
        allocated: s.allocated.get(),
        freed: s.freed.get(),
    };
    for (name, counts) in [
        ("allocation", &stats.allocation),
        ("active", &stats.active),
        ("segment", &stats.segment),
        ("inactive_split", &stats.inactive_split),
    ] {
        check(&format!("{name}.all"), counts.all);
        check(&format!("{name}.small_pool"), counts.small_pool);
        check(&format!("{name}.large_pool"), counts.large_pool);
    }
    for (name, bytes) in [
        ("allocated_bytes", &stats.allocated_bytes),
        ("active_bytes", &stats.active_bytes),
        ("requested_bytes", &stats.requested_bytes),
        ("reserved_bytes", &stats.reserved_bytes),
        ("inactive_split_bytes", &stats.inactive_split_bytes),
    ] {
        check(&format!("{name}.all"), plain(bytes.all));
        check(&format!("{name}.small_pool"), plain(bytes.small_pool));
        check(&format!("{name}.large_pool"), plain(bytes.large_pool));
    }
    for (name, got) in [
        ("num_alloc_retries", stats.num_alloc_retries),
        ("num_ooms", stats.num_ooms),
        ("num_device_alloc", stats.num_device_alloc),
        ("num_device_free", stats.num_device_free),
        ("num_sync_all_streams", stats.num_sync_all_streams),
    ] {
        if recorded[name] != got {
            found.push(format!("{name} is {got}, PyTorch has {}", recorded[name]));
        }
    }
    found
}
