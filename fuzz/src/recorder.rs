//! What the fuzz target of a recording checks: what a recorded command sends: lines of the control pipe, and the outline of the trace that it exports.

#[path = "../../crates/xmem-recorder/src/assumptions.rs"]
#[allow(dead_code, unreachable_pub, reason = "the recorder uses more of it")]
mod assumptions;
#[path = "../../crates/xmem-recorder/src/exported_graph.rs"]
#[allow(dead_code, unreachable_pub, reason = "the recorder uses more of it")]
mod exported_graph;
#[path = "../../crates/xmem-recorder/src/message.rs"]
#[allow(dead_code, unreachable_pub, reason = "the recorder uses more of it")]
mod message;
#[path = "../../crates/xmem-recorder/src/outline.rs"]
#[allow(dead_code, reason = "its facts are only shown")]
mod outline;

/// What the outline needs of the recorder.
mod recorded {
    #[derive(Debug, PartialEq, Eq)]
    #[allow(dead_code, reason = "only shown")]
    pub(crate) struct RedirectedCalls {
        pub(crate) function: String,
        pub(crate) count: u64,
    }
}

/// Reading ends, and where the text is cut changes nothing.
pub(crate) fn recorder(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        if let Ok(line) = serde_json::from_slice::<message::Line>(line) {
            std::hint::black_box(format!("{line:?}"));
            if let message::Message::Export(export) = line.message {
                std::hint::black_box((export.detail_text(), export.reason.is_complete()));
            }
        }
    }
    let read = |size: usize| {
        let mut outline = outline::Outline::default();
        data.chunks(size).try_for_each(|chunk| outline.push(chunk)).ok()?;
        Some((outline.has_events(), outline.has_end(), format!("{:?}", outline.facts())))
    };
    let whole = read(data.len().max(1));
    for size in [1, 7, 64] {
        assert_eq!(read(size), whole, "in pieces of {size} bytes");
    }
}
