//! One recorded sequence.

use crate::addresses::addresses;
use crate::model::uncached::UncachedModel;
use crate::model::{Figures, Gauge, Model, OfPools, Outcome, Segment, Use};
use crate::normalized::{in_normal_order, without_stale_requests};
use serde_json::{Value, json};
use xmem_simulator::{
    AddressOrder, AllocConf, Completion, ConfError, DeviceConfig, Event, EventAction, Operation,
    PoolOptions, PoolService, PrivatePoolId, Splitting, switches_caching_off,
};
use xmem_types::{BlockId, Bytes, StreamId, TorchVersion};

/// The total of the device that sequences were recorded with, unless they say another: an A100 with
/// 40 GB.
const TOTAL: u64 = 42_297_786_368;

/// The differences between the model and the recording.
pub(crate) fn differences(case: &Value) -> Vec<String> {
    let release = case["torch"].as_str().map_or(Ok(TorchVersion::default()), str::parse);
    let release = release.expect("a release");
    let conf = match AllocConf::parse(case["conf"].as_str().expect("text"), release) {
        Ok(conf) => conf,
        Err(ConfError::NotSimulated { .. }) => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    let no_caching = case["env"]["PYTORCH_NO_CUDA_MEMORY_CACHING"].as_str();
    if no_caching.is_some_and(|value| switches_caching_off(value, release)) {
        return uncached(case);
    }
    let mut model = Model::new(&conf.config, &device(case));
    model.device.segments = addresses(case).into();
    let mut found = Vec::new();
    // What the recording's addresses count from.
    let mut base = None;
    for (i, (op, want)) in steps(case).enumerate() {
        let outcome = model.apply(&operation(op));
        if model.undefined || want.get("error").is_some() {
            // PyTorch has stopped with an assertion, or should have.
            return found;
        }
        if base.is_none() && model.reserved() > 0 {
            base = Some(first_mapped(&model.segments));
        }
        let mut check = |what: &str, got: Value, want: &Value| {
            if got != *want {
                found.push(format!("op {i} {op}: {what} is {got}, PyTorch has {want}"));
            }
        };
        check("addr", address(outcome, base.unwrap_or_default()), &want["addr"]);
        let failed = matches!(outcome, Outcome::Full { .. } | Outcome::TooLarge);
        check("oom", failed.into(), want.get("oom").unwrap_or(&false.into()));
        check("cuda_free", model.device.free_bytes().into(), &want["cuda_free"]);
        let figures = &model.figures;
        for (name, got) in [
            ("reserved", figures.reserved_bytes.all.current),
            ("allocated", figures.allocated_bytes.all.current),
            ("active", figures.active_bytes.all.current),
            ("requested", figures.requested_bytes.all.current),
            ("inactive_split", figures.inactive_split_bytes.all.current),
            ("peak_reserved", figures.reserved_bytes.all.peak),
            ("peak_allocated", figures.allocated_bytes.all.peak),
            ("segments_n", figures.segment.all.current),
            ("retries", figures.retries),
            ("ooms", figures.ooms),
        ] {
            check(name, got.into(), &want[name]);
        }
        // Before 2.8, a snapshot in the scope of a pool shows that pool alone.
        let partial = release < TorchVersion::new(2, 8) && !model.open_scopes().is_empty();
        if let Some(segments) = want.get("segments").filter(|_| !partial) {
            let got = layout(&model.segments, base.unwrap_or_default());
            check("segments", got, &without_stale_requests(segments));
        }
    }
    compare_events(&model, base.unwrap_or_default(), &case["trace"], &mut found);
    if let Some(recorded) = case.get("final_stats") {
        compare_figures(&model.figures, recorded, !model.order_was_open, &mut found);
    }
    found
}

fn uncached(case: &Value) -> Vec<String> {
    let mut model = UncachedModel::new(&device(case));
    let mut found = Vec::new();
    let mut base = None;
    for (i, (op, want)) in steps(case).enumerate() {
        let outcome = model.apply(&operation(op));
        if let Outcome::Block(addr) = outcome {
            base.get_or_insert(addr);
        }
        let failed = matches!(outcome, Outcome::Full { .. } | Outcome::TooLarge);
        let got = (
            address(outcome, base.unwrap_or_default()),
            Value::from(failed),
            Value::from(model.device.free_bytes()),
        );
        let oom = want.get("oom").cloned().unwrap_or(false.into());
        let want = (want["addr"].clone(), oom, want["cuda_free"].clone());
        if got != want {
            found.push(format!("op {i} {op}: {got:?}, PyTorch has {want:?}"));
        }
    }
    found
}

fn steps(case: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let ops = case["ops"].as_array().expect("ops");
    ops.iter().zip(case["results"].as_array().expect("results"))
}

fn int(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn device(case: &Value) -> DeviceConfig {
    let total = case["total"].as_u64().unwrap_or(TOTAL);
    DeviceConfig {
        capacity: Some(Bytes(case["capacity"].as_u64().unwrap_or(total))),
        taken: Bytes::ZERO,
        reported_total: Some(Bytes(total)),
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
    let small = |name: &str| u32::try_from(int(&op[name])).expect("a small number");
    let (block, stream) = (|| BlockId(small("id")), || StreamId(small("stream")));
    let pool = || PrivatePoolId(small("pool"));
    match op["op"].as_str().expect("op") {
        "alloc" => {
            Operation::Alloc { block: block(), size: Bytes(int(&op["size"])), stream: stream() }
        }
        "free" => Operation::Free(block()),
        "record_stream" => Operation::RecordStream { block: block(), stream: stream() },
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
        "capture_begin" => Operation::BeginCapture { pool: pool(), stream: stream() },
        "pool_end" | "capture_end" => Operation::LeavePool(pool()),
        "pool_release" => Operation::ReleasePool(pool()),
        other => panic!("unknown op {other}"),
    }
}

fn offset(base: u64, addr: u64) -> i64 {
    addr.cast_signed() - base.cast_signed()
}

fn address(outcome: Outcome, base: u64) -> Value {
    match outcome {
        Outcome::Block(addr) => offset(base, addr).into(),
        _ => Value::Null,
    }
}

/// Ranges of blocks with memory, by address.
fn ranges(segments: &[Segment]) -> Vec<(u64, &Segment, Vec<usize>)> {
    let mut ranges: Vec<(u64, &Segment, Vec<usize>)> = Vec::new();
    for segment in segments {
        let mut open = false;
        for (b, block) in segment.blocks.iter().enumerate() {
            let mapped = block.used != Use::Unmapped;
            match ranges.last_mut() {
                Some((_, _, blocks)) if open && mapped => blocks.push(b),
                _ if mapped => ranges.push((segment.addr_of(b), segment, vec![b])),
                _ => {}
            }
            open = mapped;
        }
    }
    ranges.sort_by_key(|range| range.0);
    ranges
}

fn first_mapped(segments: &[Segment]) -> u64 {
    ranges(segments).first().map_or(0, |range| range.0)
}

fn layout(segments: &[Segment], base: u64) -> Value {
    let ranges = ranges(segments).into_iter().map(|(addr, segment, blocks)| {
        let blocks = blocks.iter().map(|&b| &segment.blocks[b]);
        let told: Vec<Value> = blocks
            .clone()
            .map(|b| match b.used {
                Use::Held { requested } => json!([b.size, requested, "active_allocated"]),
                Use::Waiting { requested } => json!([b.size, requested, "active_pending_free"]),
                Use::Free | Use::Unmapped => json!([b.size, 0, "inactive"]),
            })
            .collect();
        let mut range = json!({
            "addr": offset(base, addr),
            "size": blocks.map(|b| b.size).sum::<u64>(),
            "stream": segment.stream,
            "pool": if segment.pool.small { "small" } else { "large" },
            "expandable": segment.expandable,
            "blocks": told,
        });
        if let Some(pool) = segment.pool.private {
            range["private"] = pool.into();
        }
        range
    });
    ranges.collect()
}

fn compare_events(model: &Model, base: u64, trace: &Value, found: &mut Vec<String>) {
    let trace = trace.as_array().expect("trace");
    let tells_free_bytes = trace.iter().any(|event| event.get("device_free").is_some());
    let told = |e: &Event| {
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
    };
    let events = in_normal_order(model.events.iter().map(told).collect());
    let trace = in_normal_order(trace.clone());
    for (i, want) in trace.iter().enumerate() {
        if events.get(i) != Some(want) {
            found.push(format!("event {i}: {:?}, PyTorch has {want}", events.get(i)));
        }
    }
    if events.len() != trace.len() {
        found.push(format!("{} events, PyTorch has {}", events.len(), trace.len()));
    }
}

/// `torch.cuda.memory_stats`, figure by figure. The order in which frees complete together decides
/// how many free blocks there are in between.
fn compare_figures(figures: &Figures, recorded: &Value, in_order: bool, found: &mut Vec<String>) {
    let mut check = |name: String, got: u64| {
        if recorded.get(&name).is_some_and(|want| *want != got) {
            found.push(format!("{name} is {got}, PyTorch has {}", recorded[&name]));
        }
    };
    let mut gauge = |name: String, gauge: Gauge| {
        check(format!("{name}.current"), gauge.current);
        if in_order || !name.starts_with("inactive_split") {
            check(format!("{name}.peak"), gauge.peak);
            check(format!("{name}.allocated"), gauge.up);
            check(format!("{name}.freed"), gauge.down);
        }
    };
    let by_pool: [(&str, OfPools); 9] = [
        ("allocation", figures.allocation),
        ("active", figures.active),
        ("segment", figures.segment),
        ("inactive_split", figures.inactive_split),
        ("allocated_bytes", figures.allocated_bytes),
        ("active_bytes", figures.active_bytes),
        ("requested_bytes", figures.requested_bytes),
        ("reserved_bytes", figures.reserved_bytes),
        ("inactive_split_bytes", figures.inactive_split_bytes),
    ];
    for (name, figure) in by_pool {
        gauge(format!("{name}.all"), figure.all);
        gauge(format!("{name}.small_pool"), figure.small);
        gauge(format!("{name}.large_pool"), figure.large);
    }
    gauge("oversize_allocations".to_owned(), figures.oversize_allocations);
    gauge("oversize_segments".to_owned(), figures.oversize_segments);
    for (name, got) in [
        ("num_alloc_retries", figures.retries),
        ("num_ooms", figures.ooms),
        ("num_device_alloc", figures.device_allocs),
        ("num_device_free", figures.device_frees),
        ("num_sync_all_streams", figures.synchronisations),
        ("num_oom_rejections", figures.oom_rejections),
    ] {
        check(name.to_owned(), got);
    }
}
