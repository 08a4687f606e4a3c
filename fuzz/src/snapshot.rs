//! What the fuzz target of the snapshot reader checks. Tests of `xmem-snapshot` include this file
//! too, so that it keeps up with the crate.

use xmem_snapshot::{DeviceIndex, Limits, Snapshot, read, write};
use xmem_types::{Bytes, RequestKind};

/// Reading and using a snapshot ends, without a panic; its requests make sense; written and read
/// again, it is the same. Tells whether it could be read.
pub(crate) fn read_and_use(bytes: &[u8]) -> bool {
    let limits = Limits { memory: Bytes::mib(64), ..Limits::default() };
    let Ok((snapshot, diagnostics)) = read(bytes, &limits) else { return false };
    std::hint::black_box(format!("{snapshot:?} {diagnostics:?}"));
    for device in 0..=snapshot.device_traces.len() {
        let device = DeviceIndex(device as u32);
        let recorded = snapshot.requests(device);
        assert_eq!(recorded.requests.len(), recorded.entries.len());
        let mut held = Vec::new();
        for request in &recorded.requests {
            match request.kind {
                RequestKind::Alloc { .. } => {
                    assert_eq!(request.block.index(), held.len(), "blocks are numbered in order");
                    held.push(true);
                }
                RequestKind::Free => {
                    assert!(held[request.block.index()], "freed twice");
                    held[request.block.index()] = false;
                }
            }
        }
        let (usage, _) = snapshot.usage(device);
        for course in [usage.requested, usage.reserved] {
            assert!(course.peak >= course.start && course.peak >= course.end);
        }
    }
    write_and_read(&snapshot);
    true
}

fn write_and_read(snapshot: &Snapshot) {
    let written = |snapshot: &Snapshot| {
        let mut bytes = Vec::new();
        write(snapshot, &mut bytes).expect("memory takes everything");
        bytes
    };
    let bytes = written(snapshot);
    let (again, _) = read(&bytes, &Limits::default()).expect("what was written can be read");
    assert!(again == *snapshot, "{snapshot:?} became {again:?}");
    assert!(written(&again) == bytes, "written differently the second time");
}
