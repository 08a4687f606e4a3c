//! `torch.cuda.memory_stats`, figure by figure.

use serde_json::Value;
use xmem_simulator::{Stat, Stats};
use xmem_types::Bytes;

pub(crate) fn compare(stats: &Stats, recorded: &Value, found: &mut Vec<String>) {
    let mut check = |name: &str, stat: Stat<u64>| {
        for (part, got) in [
            ("current", stat.current),
            ("peak", stat.peak),
            ("allocated", stat.allocated),
            ("freed", stat.freed),
        ] {
            let Some(want) = recorded.get(format!("{name}.{part}")) else { continue };
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
}
