//! A sequence of operations, and what PyTorch's allocator answered to each.

use crate::addresses::addresses;
use crate::normalized::{in_normal_order, without_stale_requests};
use crate::{int, stats, stream};
use serde_json::{Value, json};
use xmem_simulator::{
    AddressOrder, AllocConf, AllocatorChoice, BlockUse, ChosenAllocator, Completion, ConfError,
    Device, DeviceConfig, Event, EventAction, Framework, FrameworkAllocator, Operation, Outcome,
    PoolKind, PoolOptions, PoolService, PrivatePoolId, Session, Splitting, switches_caching_off,
};
use xmem_types::{Addr, BlockId, Bytes, TorchVersion};

type Allocator = ChosenAllocator<Vec<Event>>;

/// The total of the device that sequences were recorded with, unless they say another: an A100 with
/// 40 GB.
const TOTAL: Bytes = Bytes(42_297_786_368);

/// The differences between the simulator and the recording.
pub(crate) fn differences(case: &Value) -> Vec<String> {
    let release = case["torch"].as_str().map_or(Ok(TorchVersion::default()), str::parse);
    let release = release.expect("a release");
    let conf = case["conf"].as_str().expect("conf is text");
    let conf = match AllocConf::parse(conf, release) {
        Ok(conf) => conf,
        Err(ConfError::NotSimulated { .. }) => return Vec::new(),
        Err(error) => return vec![format!("{conf}: {error}")],
    };
    let mut choice = AllocatorChoice::from_conf(&conf);
    let no_caching = &case["env"]["PYTORCH_NO_CUDA_MEMORY_CACHING"];
    let uncached = no_caching.as_str().is_some_and(|value| switches_caching_off(value, release));
    if uncached {
        choice = AllocatorChoice::Uncached;
    }
    let segments = addresses(case).into_iter().map(Addr);
    let device = Device::recorded(&device(case), segments, []);
    let mut session = Session::new(choice.over(device, Vec::<Event>::new()));

    let mut found = Vec::new();
    // What the recording's addresses count from.
    let mut base = None;
    let ops = case["ops"].as_array().expect("ops");
    let results = case["results"].as_array().expect("results");
    let mut scopes = 0;
    for (i, (op, want)) in ops.iter().zip(results).enumerate() {
        if breaks_pytorch(want) {
            return found;
        }
        match op["op"].as_str() {
            Some("pool_begin") => scopes += 1,
            Some("pool_end") => scopes -= 1,
            _ => {}
        }
        let done = session.apply(&operation(op)).unwrap_or_else(|e| panic!("op {i} {op}: {e}"));
        let allocator = session.allocator();
        if base.is_none() {
            base = allocator.state().first().map(|segment| segment.addr.0);
        }
        let base = base.unwrap_or_default();
        let mut check = |what: &str, got: Value, want: &Value| {
            if got != *want {
                found.push(format!("op {i} {op}: {what} is {got}, PyTorch has {want}"));
            }
        };
        let addr = match done {
            Outcome::Block(handle) => Some(offset(base, allocator.block(handle).addr.0)),
            Outcome::Nothing | Outcome::Failed(_) => None,
        };
        check("addr", json!(addr), &want["addr"]);
        let failed = matches!(done, Outcome::Failed(_));
        check("oom", failed.into(), want.get("oom").unwrap_or(&false.into()));
        if let Some(free) = allocator.device().free_bytes() {
            check("cuda_free", free.get().into(), &want["cuda_free"]);
        }
        if uncached {
            continue;
        }
        let stats = allocator.stats();
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
        // In a pool's scope, these releases show that pool alone.
        let partial = scopes > 0 && release < TorchVersion::new(2, 8);
        if let Some(segments) = want.get("segments").filter(|_| !partial) {
            check("segments", layout(allocator, base), &without_stale_requests(segments));
        }
    }
    if !uncached {
        compare_events(session.allocator(), base.unwrap_or_default(), case, &mut found);
        if let Some(recorded) = case.get("final_stats") {
            let mut recorded = recorded.clone();
            if defers_frees(case) {
                forget_what_order_decides(&mut recorded);
            }
            stats::compare(&session.allocator().stats(), &recorded, &mut found);
        }
    }
    found
}

/// Some operations fail an assertion of PyTorch itself, which leaves its allocator in a state that
/// nothing follows from.
fn breaks_pytorch(result: &Value) -> bool {
    result["message"].as_str().is_some_and(|message| message.contains("INTERNAL ASSERT FAILED"))
}

fn device(case: &Value) -> DeviceConfig {
    let total = case["total"].as_u64().map_or(TOTAL, Bytes);
    DeviceConfig {
        capacity: Some(case["capacity"].as_u64().map_or(total, Bytes)),
        taken: Bytes::ZERO,
        reported_total: Some(total),
        address_total: None,
        address_order: match case["address_order"].as_str() {
            Some("driver") => AddressOrder::Driver,
            Some("descending") => AddressOrder::Descending,
            _ => AddressOrder::Ascending,
        },
        completion: match case["events"].as_str() {
            Some("held") => Completion::AtSynchronization,
            _ => Completion::Immediate,
        },
    }
}

fn operation(op: &Value) -> Operation {
    let block = || BlockId(u32::try_from(int(&op["id"])).expect("a small number"));
    let pool = || PrivatePoolId(u32::try_from(int(&op["pool"])).expect("a small number"));
    match op["op"].as_str().expect("op") {
        "alloc" => Operation::Alloc {
            block: block(),
            size: Bytes(int(&op["size"])),
            stream: stream(&op["stream"]),
        },
        "free" => Operation::Free(block()),
        "record_stream" => {
            Operation::RecordStream { block: block(), stream: stream(&op["stream"]) }
        }
        "synchronize" => Operation::Synchronize,
        "empty_cache" => Operation::EmptyCache,
        "fraction" => Operation::MemoryFraction(op["value"].as_f64().expect("a number")),
        "reset_peak" => Operation::ResetPeaks,
        "capacity" => Operation::Capacity(Bytes(int(&op["value"]))),
        "pool_begin" => Operation::EnterPool {
            pool: pool(),
            options: PoolOptions {
                splitting: match op["no_split"].as_bool() {
                    Some(true) => Splitting::Never,
                    _ => Splitting::Usual,
                },
                service: match op["use_on_oom"].as_bool() {
                    Some(true) => PoolService::LastResort,
                    _ => PoolService::Scopes,
                },
            },
        },
        "capture_begin" => Operation::BeginCapture { pool: pool(), stream: stream(&op["stream"]) },
        "pool_end" | "capture_end" => Operation::LeavePool(pool()),
        "pool_release" => Operation::ReleasePool(pool()),
        other => panic!("unknown op {other}"),
    }
}

fn offset(base: u64, addr: u64) -> i64 {
    addr.cast_signed() - base.cast_signed()
}

fn layout(allocator: &Allocator, base: u64) -> Value {
    let segments = allocator.state().into_iter().map(|s| {
        let blocks: Vec<Value> = s
            .blocks
            .iter()
            .map(|b| {
                let requested = if b.used == BlockUse::Free { 0 } else { b.requested.get() };
                json!([b.size.get(), requested, b.used.name()])
            })
            .collect();
        let mut segment = json!({
            "addr": offset(base, s.addr.0),
            "size": s.size.get(),
            "stream": s.stream.0,
            "pool": if s.pool == PoolKind::Small { "small" } else { "large" },
            "expandable": s.expandable,
            "blocks": blocks,
        });
        if let Some(pool) = s.private_pool {
            segment["private"] = pool.0.into();
        }
        segment
    });
    segments.collect()
}

/// Returns whether blocks that other streams use may be freed during a capture.
fn defers_frees(case: &Value) -> bool {
    let ops = case["ops"].as_array().expect("ops");
    let is = |op: &Value, names: &[&str]| op["op"].as_str().is_some_and(|op| names.contains(&op));
    ops.iter().any(|op| is(op, &["record_stream"]))
        && ops.iter().any(|op| is(op, &["pool_begin", "capture_begin"]))
}

/// The order in which frees complete together decides how many free blocks there are in between.
fn forget_what_order_decides(recorded: &mut Value) {
    let figures = recorded.as_object_mut().expect("figures");
    figures.retain(|name, _| !name.starts_with("inactive_split") || name.ends_with("current"));
}

fn compare_events(allocator: &Allocator, base: u64, case: &Value, found: &mut Vec<String>) {
    let trace = case["trace"].as_array().expect("trace");
    let tells_free_bytes = trace.iter().any(|event| event.get("device_free").is_some());
    let events: Vec<Value> = allocator
        .observer()
        .iter()
        .map(|e| {
            let out_of_memory = e.action == EventAction::Oom;
            let mut event = json!({
                "action": e.action.name(),
                "addr": (!out_of_memory).then(|| offset(base, e.addr.0)),
                "size": e.size.get(),
                "stream": e.stream.0,
            });
            if out_of_memory && tells_free_bytes {
                event["device_free"] = e.addr.0.into();
            }
            event
        })
        .collect();
    let (events, trace) = if defers_frees(case) {
        (in_normal_order(events), in_normal_order(trace.to_vec()))
    } else {
        (events, trace.to_vec())
    };
    for (i, want) in trace.iter().enumerate() {
        if events.get(i) != Some(want) {
            found.push(format!("event {i}: {:?}, PyTorch has {want}", events.get(i)));
        }
    }
    if events.len() != trace.len() {
        found.push(format!("{} events, PyTorch has {}", events.len(), trace.len()));
    }
}
