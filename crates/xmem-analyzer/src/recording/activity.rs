//! The log of what the streams of a virtual GPU were told, as the recorder writes it: work, copies, collectives,
//! events and waits, in columns.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use xmem_types::{Addr, Bytes, Nanos};

/// What the streams of a device were told. Times are those of the system's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamActivity {
    /// In order of time.
    pub entries: Vec<ActivityEntry>,
    /// Times in which the recorder waited, and the script did not.
    pub pauses: Vec<Range<Nanos>>,
}

/// An entry of [`StreamActivity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityEntry {
    /// Time of the call.
    pub time: Nanos,
    /// The system's number of the calling thread.
    pub thread: u32,
    /// A number for each stream.
    pub stream: u32,
    /// The call.
    pub kind: ActivityKind,
}

/// The kind of an [`ActivityEntry`]. A moment is a number for each time that an event is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    /// The work of this thread goes to this stream from now on.
    Work,
    /// A copy between host and device.
    Copy(Bytes),
    /// A collective of NCCL.
    Collective {
        /// The operation.
        operation: CollectiveKind,
        /// Bytes of all parts together.
        bytes: Bytes,
        /// Ranks of the communicator.
        ranks: u32,
        /// The larger of its buffers.
        address: Addr,
    },
    /// An event is recorded.
    Record(u64),
    /// The stream waits for a moment.
    Wait(u64),
    /// The host waits for the stream.
    HostWaitsForStream,
    /// The host waits for a moment.
    HostWaitsForMoment(u64),
    /// The host waits for all streams.
    HostWaitsForDevice,
}

/// An operation of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// `ncclAllReduce`
    AllReduce,
    /// `ncclAllGather`
    AllGather,
    /// `ncclReduceScatter`
    ReduceScatter,
    /// `ncclBroadcast`, `ncclReduce`
    BroadcastOrReduce,
    /// `ncclAlltoAll`, and sends and receives between a rank and all others.
    AllToAll,
    /// `ncclSend` and `ncclRecv`, those of a group together. Bytes that are sent or received, whichever are more.
    PointToPoint,
}

/// The form in the file.
#[derive(Deserialize)]
pub(super) struct ActivityDto {
    kinds: String,
    times: Vec<i64>,
    threads: Vec<u32>,
    streams: Vec<u32>,
    values: Vec<u64>,
    #[serde(default)]
    ranks: Vec<(usize, u32, String)>,
    #[serde(default)]
    pauses: Vec<(i64, i64)>,
}

impl ActivityDto {
    /// The log; none if its columns contradict each other.
    pub(super) fn read(self) -> Option<StreamActivity> {
        let rows = self.kinds.len();
        let lengths = [self.times.len(), self.threads.len(), self.streams.len(), self.values.len()];
        if lengths.iter().any(|len| *len != rows) {
            return None;
        }
        let ranks: BTreeMap<usize, (u32, Addr)> = self
            .ranks
            .iter()
            .map(|(row, ranks, address)| Some((*row, (*ranks, Addr::from_hex(address)?))))
            .collect::<Option<_>>()?;
        let mut time = Nanos::ZERO;
        let mut entries = Vec::with_capacity(rows);
        for (row, letter) in self.kinds.bytes().enumerate() {
            time = time + Nanos(self.times[row]);
            let value = self.values[row];
            let collective = |operation| {
                let &(ranks, address) = ranks.get(&row)?;
                let bytes = Bytes(value);
                Some(ActivityKind::Collective { operation, bytes, ranks, address })
            };
            let kind = match letter {
                b'w' => ActivityKind::Work,
                b'c' => ActivityKind::Copy(Bytes(value)),
                b'a' | b'r' => ActivityKind::Record(value),
                b's' => ActivityKind::Wait(value),
                b'h' => ActivityKind::HostWaitsForStream,
                b'e' => ActivityKind::HostWaitsForMoment(value),
                b'd' => ActivityKind::HostWaitsForDevice,
                b'R' => collective(CollectiveKind::AllReduce)?,
                b'G' => collective(CollectiveKind::AllGather)?,
                b'S' => collective(CollectiveKind::ReduceScatter)?,
                b'B' => collective(CollectiveKind::BroadcastOrReduce)?,
                b'A' => collective(CollectiveKind::AllToAll)?,
                b'P' => collective(CollectiveKind::PointToPoint)?,
                _ => return None,
            };
            let (thread, stream) = (self.threads[row], self.streams[row]);
            entries.push(ActivityEntry { time, thread, stream, kind });
        }
        let pauses = self.pauses.into_iter().map(|(from, to)| Nanos(from)..Nanos(to)).collect();
        Some(StreamActivity { entries, pauses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<StreamActivity> {
        serde_json::from_str::<ActivityDto>(text).expect("form").read()
    }

    #[test]
    fn columns_become_entries_and_contradictions_none() {
        let text = r#"{"kinds":"wGr","times":[1000,5,1],"threads":[7,7,8],"streams":[0,1,1],
            "values":[0,4096,3],"ranks":[[1,8,"0x200"]],"pauses":[[10,20]]}"#;
        let activity = read(text).expect("valid");
        let gather = ActivityKind::Collective {
            operation: CollectiveKind::AllGather,
            bytes: Bytes(4096),
            ranks: 8,
            address: Addr(0x200),
        };
        let entry = |time, thread, stream, kind| ActivityEntry { time, thread, stream, kind };
        assert_eq!(
            activity.entries,
            [
                entry(Nanos(1000), 7, 0, ActivityKind::Work),
                entry(Nanos(1005), 7, 1, gather),
                entry(Nanos(1006), 8, 1, ActivityKind::Record(3)),
            ]
        );
        assert_eq!(activity.pauses, [Nanos(10)..Nanos(20)]);
        let text_of_send = text.replacen("wGr", "wPr", 1);
        let ActivityKind::Collective { operation, bytes, .. } =
            read(&text_of_send).expect("valid").entries[1].kind
        else {
            panic!("a send")
        };
        assert_eq!((operation, bytes), (CollectiveKind::PointToPoint, Bytes(4096)));
        for (from, to) in [("wGr", "wG"), ("wGr", "wGx"), ("[[1,8", "[[0,8"), ("0x200", "none")] {
            assert_eq!(read(&text.replacen(from, to, 1)), None, "{from} -> {to}");
        }
    }
}
