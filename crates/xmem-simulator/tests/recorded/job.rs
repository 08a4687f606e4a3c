//! A training job's requests, and what PyTorch's allocator made of them.

use crate::{base, int, stats, stream};
use serde_json::Value;
use std::collections::BTreeMap;
use xmem_simulator::{
    AllocatorConfig, CachingAllocator, Device, DeviceConfig, Event, FrameworkAllocator,
    RequestIndex, replay,
};
use xmem_types::{BlockId, Bytes, Request, RequestKind};

pub(crate) fn differences(case: &Value) -> Vec<String> {
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
    let mut live = BTreeMap::new();
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
    stats::compare(&stats, &case["memory_stats"], &mut found);
    found
}
