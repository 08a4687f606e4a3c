//! Offloading as CSV.

use xmem_studies::offloading::OffloadAnswer;

/// A row for each policy and placement.
#[must_use]
pub fn offload(answer: &OffloadAnswer) -> String {
    let header = "policy,placement,step_us,compute_us,copying_us,overlapped_us,exposed_us,blocked_us,\
                  recomputed_us,host_us,to_host_bytes,to_device_bytes,pinned_bytes,on_host_bytes,lower_bound_bytes,peak_bytes,\
                  smallest_capacity_bytes,\
                  unusable_at_peak,out_of_memory,workspaces_whole,workspaces_smaller,workspaces_without,\
                  jitter_most_bytes,jitter_failures,waiting_bytes,pool_bytes\n";
    let mut page = header.to_owned();
    for row in &answer.rows {
        let times = [
            row.step_time,
            row.compute,
            row.copying,
            row.overlapped,
            row.exposed(),
            row.blocked,
            row.recomputed,
            row.host_computes,
        ];
        let times = times.map(|time| format!("{:.3}", time.get() as f64 / 1e3)).join(",");
        let sizes = [row.to_host, row.to_device, row.pinned, row.on_host, row.live, row.peak];
        let sizes = sizes.map(|size| size.get().to_string()).join(",");
        let failed = row.out_of_memory.is_some();
        let (policy, placement) = (row.policy, row.placement);
        let unusable = row.unusable_at_peak;
        let smallest = row.smallest.map_or_else(String::new, |bytes| bytes.get().to_string());
        let spaces = [row.workspaces.whole, row.workspaces.smaller, row.workspaces.without];
        let spaces = spaces.map(|count| count.to_string()).join(",");
        let jittered = row.jittered.as_ref().map_or_else(
            || ",".to_owned(),
            |jittered| format!("{},{}", jittered.most().get(), jittered.failures(row.peak)),
        );
        let or_empty = |bytes: Option<xmem::Bytes>| {
            bytes.map_or_else(String::new, |bytes| bytes.get().to_string())
        };
        let waiting = or_empty(row.waiting.map(|waiting| waiting.most));
        let pool = or_empty(row.pool);
        page += &format!(
            "{policy},{placement},{times},{sizes},{smallest},{unusable:.6},{failed},{spaces},{jittered},\
             {waiting},{pool}\n"
        );
    }
    page
}

/// Memory and fragmentation over time: a row for each event of each policy and placement.
#[must_use]
pub fn offload_series(answer: &OffloadAnswer) -> String {
    let mut page = "policy,placement,time_us,live_bytes,used_bytes,unusable\n".to_owned();
    for row in &answer.rows {
        for sample in &row.series {
            page += &format!(
                "{},{},{:.3},{},{},{:.6}\n",
                row.policy,
                row.placement,
                sample.time.get() as f64 / 1e3,
                sample.live.get(),
                sample.used.get(),
                sample.unusable
            );
        }
    }
    page
}
