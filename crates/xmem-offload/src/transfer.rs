//! The link between host and device, and the copies on it.

use std::fmt;
use xmem_types::{BlockId, Bytes, Nanos};

/// The link between host and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bytes per second, of one direction; zero is no link at all.
    pub bandwidth: Bytes,
    /// The time before the first byte of each copy.
    pub latency: Nanos,
    /// The number of streams that copy.
    pub duplex: Duplex,
}

/// The number of streams that copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplex {
    /// One stream copies in both directions, as in Dymem.
    #[default]
    Half,
    /// One stream for each direction.
    Full,
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the device to the host.
    ToHost,
    /// From the host to the device.
    ToDevice,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ToHost => "to_host",
            Self::ToDevice => "to_device",
        })
    }
}

/// A copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The block.
    pub block: BlockId,
    /// Its bytes.
    pub size: Bytes,
    /// The direction.
    pub direction: Direction,
    /// The time from which the stream may copy it.
    pub issued: Nanos,
    /// The time at which the stream begins.
    pub start: Nanos,
    /// The time at which it is done.
    pub end: Nanos,
}

impl Link {
    /// The time that a copy of `size` bytes takes.
    #[must_use]
    pub fn time(&self, size: Bytes) -> Nanos {
        let bytes = u128::from(size.get()) * 1_000_000_000;
        let nanos = bytes.div_ceil(u128::from(self.bandwidth.get().max(1)));
        self.latency + Nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 4).min(i64::MAX / 4))
    }
}

/// The streams that copy: first in, first out, one copy at a time.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    link: Link,
    /// From when each direction's stream is free.
    free: [Nanos; 2],
    pub(crate) transfers: Vec<Transfer>,
}

impl Streams {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, free: [Nanos::ZERO; 2], transfers: Vec::new() }
    }

    /// Queues a copy and gives the time at which it is done.
    pub(crate) fn queue(
        &mut self,
        block: BlockId,
        size: Bytes,
        direction: Direction,
        issued: Nanos,
    ) -> Nanos {
        let lane = match (self.link.duplex, direction) {
            (Duplex::Half, _) | (Duplex::Full, Direction::ToHost) => 0,
            (Duplex::Full, Direction::ToDevice) => 1,
        };
        let start = issued.max(self.free[lane]);
        let end = start + self.link.time(size);
        self.free[lane] = end;
        self.transfers.push(Transfer { block, size, direction, issued, start, end });
        end
    }

    /// The time at which all that is queued is done.
    pub(crate) fn idle(&self) -> Nanos {
        self.free[0].max(self.free[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_latency_and_bytes_at_the_bandwidth() {
        let link =
            Link { bandwidth: Bytes(16_000_000_000), latency: Nanos(10_000), duplex: Duplex::Half };
        assert_eq!(link.time(Bytes(0)), Nanos(10_000));
        assert_eq!(link.time(Bytes(16_000_000)), Nanos(1_010_000));
        // A part of a nanosecond is one.
        assert_eq!(link.time(Bytes(1)), Nanos(10_001));
    }

    #[test]
    fn one_stream_copies_one_block_after_the_other_and_two_do_not_wait() {
        for (duplex, expected) in [(Duplex::Half, 20), (Duplex::Full, 15)] {
            let link = Link { bandwidth: Bytes(1_000_000_000), latency: Nanos::ZERO, duplex };
            let mut streams = Streams::new(link);
            streams.queue(BlockId(0), Bytes(10), Direction::ToHost, Nanos(0));
            let end = streams.queue(BlockId(1), Bytes(10), Direction::ToDevice, Nanos(5));
            assert_eq!(end, Nanos(expected));
            assert_eq!(streams.idle(), end);
        }
    }
}
