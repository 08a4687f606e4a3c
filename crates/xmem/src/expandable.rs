//! Options of an allocator with or without expandable segments.

use xmem_predict::{AllocatorKind, AllocatorSetup};

/// The options of an allocator with `expandable_segments` switched on or off; none for allocators that do not have them.
pub(crate) fn conf(setup: &AllocatorSetup, on: bool) -> Option<String> {
    const NAME: &str = "expandable_segments";
    if setup.kind != AllocatorKind::Native {
        return None;
    }
    let own = format!("{NAME}:{}", if on { "True" } else { "False" });
    // Of an option that is given twice, the last one counts.
    Some(match setup.conf.as_str() {
        "" => own,
        conf if conf == format!("{NAME}:True") => own,
        conf => format!("{conf},{own}"),
    })
}
