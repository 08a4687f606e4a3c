//! Memory that NCCL takes outside PyTorch's allocator: buffers of connections, channel by channel, for each
//! communicator.
//!
//! The formula is that of NCCL's sources; the number of channels and the way in which GPUs reach each other are the
//! machine's, so that the result is a range. docs/reference/nccl.md has the formula, and compares it with
//! published measurements.

use xmem_analyzer::Collectives;
use xmem_analyzer::recording::Rank;
use xmem_devices::{ComputeCapability, Device};
use xmem_types::Bytes;

/// The memory of NCCL in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcclMemory {
    /// The communicators.
    pub communicators: u32,
    /// Whether they were counted; else each process group of NCCL may have made one.
    pub is_counted: bool,
    /// The least.
    pub low: Bytes,
    /// What is expected on a machine as usual for the GPU.
    pub expected: Bytes,
    /// The most.
    pub high: Bytes,
}

/// The size of pages of device memory: each allocation of NCCL that is shared with another process or comes from
/// `cuMemCreate` takes whole ones (src/include/alloc.h, `ncclCuMemAlloc`; src/transport/p2p.cc, `CUDA_IPC_MIN`).
const PAGE: u64 = 2 << 20;

/// Bounds for what a recording may say, so that no sum overflows: bytes in all, ranks, and bytes of a buffer (an `int`
/// in NCCL).
const MAX_BYTES: u64 = 1 << 50;
const MAX_RANKS: u64 = 1 << 20;
const MAX_BUFFER: u64 = 1 << 31;

/// Releases of NCCL in which memory changed.
const CU_MEM: (u32, u32, u32) = (2, 19, 0);
const SMALL_NVLS_CHUNKS: (u32, u32, u32) = (2, 21, 0);
const RUNTIME_CONNECT: (u32, u32, u32) = (2, 22, 0);
const NVLS_WITHOUT_CREDITS: (u32, u32, u32) = (2, 25, 0);
const NVLS_IN_PAGES: (u32, u32, u32) = (2, 28, 0);

/// The granularity of multicast memory that the driver recommends on an H100
/// (`CU_MULTICAST_GRANULARITY_RECOMMENDED`, src/transport/nvls.cc; 512 MiB by NVIDIA/apex, pull request 1797).
const MULTICAST: u64 = 512 << 20;

/// Least, expected and most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Estimate<T> {
    low: T,
    expected: T,
    high: T,
}

/// The settings of NCCL that change its memory, by the user guide ("Environment Variables"); sizes in bytes.
struct Settings {
    release: Option<(u32, u32, u32)>,
    /// Buffers of the protocols LL, LL128 and Simple (src/init.cc, `computeBuffSizes`).
    ll: u64,
    ll128: u64,
    simple: u64,
    least_channels: Option<u64>,
    most_channels: Option<u64>,
    nvls: bool,
    p2p: bool,
    is_lazy: bool,
    cu_mem: bool,
}

/// The machine as its GPU tells.
struct Machine {
    /// True if NVLink connects all GPUs, or may.
    nvlink: bool,
    /// False of a device of which only the memory is known.
    is_known: bool,
    capability: ComputeCapability,
}

impl NcclMemory {
    /// The memory for a rank on a device; none if the job does not use NCCL. `variables` are those of the recorded
    /// environment.
    pub(crate) fn of(
        rank: &Rank,
        collectives: Collectives,
        variables: &[(String, String)],
        device: &Device,
    ) -> Option<Self> {
        if !rank.backend.as_deref().is_some_and(|backend| backend.contains("nccl")) {
            return None;
        }
        let settings = Settings::of(rank, variables);
        let machine = Machine::of(device);
        let counted = rank.communicators.as_ref();
        let made = counted.unwrap_or(&rank.groups).clone();
        // A rank without a list has at least the default process group.
        let made = if made.is_empty() && counted.is_none() { vec![rank.world_size] } else { made };
        let made: Vec<u32> = made.into_iter().filter(|&ranks| ranks > 1).collect();
        if made.is_empty() {
            return None;
        }
        let local = rank.nodes.map(|nodes| rank.world_size.div_ceil(nodes));
        let mut total = Estimate::<u64>::default();
        for (at, &ranks) in made.iter().enumerate() {
            let of_one = communicator(ranks, local, collectives, &settings, &machine);
            // Of groups that are not known to be used, the first one is.
            let low = if counted.is_some() || at == 0 { of_one.low } else { 0 };
            let add = |sum: u64, more: u64| sum.saturating_add(more).min(MAX_BYTES);
            total.low = add(total.low, low);
            total.expected = add(total.expected, of_one.expected);
            total.high = add(total.high, of_one.high);
        }
        Some(Self {
            communicators: made.len() as u32,
            is_counted: counted.is_some(),
            low: Bytes(total.low),
            expected: Bytes(total.expected),
            high: Bytes(total.high),
        })
    }

    /// Takes this memory from the device, beside the context.
    pub(super) fn take_from(self, device: &mut Device) {
        device.context += self.expected;
        device.tolerance.context_less += self.expected - self.low;
        device.tolerance.context_more += self.high - self.expected;
    }
}

/// The bytes of a communicator of `ranks` ranks, `local` of which are on one machine where that is known.
fn communicator(
    ranks: u32,
    local: Option<u32>,
    collectives: Collectives,
    settings: &Settings,
    machine: &Machine,
) -> Estimate<u64> {
    let ranks = u64::from(ranks).min(MAX_RANKS);
    let local = local.map_or(ranks, |local| ranks.min(u64::from(local)));
    let has_network = local < ranks;
    let channels = settings.channels(machine);
    let is_lazy = settings.is_lazy;

    // A ring has a neighbor on each side, which is the same of two ranks. A tree goes both ways between neighbors
    // (src/graph/trees.cc); since 2.22 only algorithms that are used are connected (`NCCL_RUNTIME_CONNECT`).
    let ring = 1;
    let with_tree = if ranks > 2 { 2 } else { 1 };
    let peer = settings.peer();
    let least = if settings.release.is_some() && !is_lazy { with_tree } else { ring };
    let is_between_pairs =
        !collectives.among_all && (collectives.point_to_point || collectives.all_to_all);
    let usual = match () {
        () if !is_lazy || collectives.all_reduce => with_tree,
        () if is_between_pairs => 0,
        () => ring,
    };
    let mut total = Estimate {
        // Without peer access, buffers are in the host's memory (src/transport/shm.cc).
        low: if machine.nvlink && machine.is_known && settings.p2p && local > 1 {
            channels.low * least * peer
        } else {
            0
        },
        expected: if local > 1 && settings.p2p { channels.expected * usual * peer } else { 0 },
        high: channels.high * with_tree * peer,
    };

    // Rings enter and leave a machine once in each channel; trees have up to three neighbors elsewhere. With
    // GPUDirect, buffers of LL128 and Simple are on the GPU at both ends (src/transport/net.cc).
    if has_network {
        let end = pages(settings.ll128 + settings.simple);
        total.expected += channels.expected.div_ceil(local) * 2 * end;
        total.high += channels.high.min(channels.high.div_ceil(local) * 2) * 6 * end;
    }

    // Tables of peers and ranks, for each channel (src/channel.cc, `initChannel`); with `cuMem*` each takes a page.
    let tables = if settings.cu_mem { 3 * PAGE } else { 0 };
    total.expected += channels.expected * tables;
    total.high += channels.high * 3 * PAGE + PAGE;

    let nvls = settings.nvls(machine, local);
    total.expected += if is_lazy && !collectives.all_reduce { 0 } else { nvls.expected };
    total.high += nvls.high;

    // Sends and receives have channels of their own, one set for each peer (src/transport.cc).
    let peers = local - 1;
    let of_peer = peer + PAGE;
    if collectives.all_to_all {
        total.expected += if settings.p2p { peers * channels.p2p() * peer } else { 0 };
    } else if collectives.point_to_point {
        total.expected += if settings.p2p { peers.min(2) * channels.p2p() * peer } else { 0 };
    }
    if collectives.all_to_all || collectives.point_to_point {
        total.high += peers * channels.high * of_peer;
    }
    total
}

const fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE) * PAGE
}

impl Estimate<u64> {
    /// Channels for sends and receives to a peer: as many as for collectives, or more.
    fn p2p(self) -> u64 {
        self.expected.next_power_of_two().min(self.high)
    }
}

impl Settings {
    fn of(rank: &Rank, variables: &[(String, String)]) -> Self {
        let text = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, v)| v);
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
        let bytes = |name: &str| Some(number(name)?.min(MAX_BUFFER));
        let least = |name: &str| number(name).filter(|&channels| channels > 0);
        Self {
            release: rank.nccl,
            // 8 steps: 512 threads of 8 lines of 16 bytes; 640 threads of 120 elements of 8 bytes; 4 MiB.
            ll: bytes("NCCL_LL_BUFFSIZE").unwrap_or(512 * 8 * 16 * 8),
            ll128: bytes("NCCL_LL128_BUFFSIZE").unwrap_or(640 * 120 * 8 * 8),
            simple: bytes("NCCL_BUFFSIZE").unwrap_or(4 << 20),
            least_channels: least("NCCL_MIN_CTAS").or_else(|| least("NCCL_MIN_NCHANNELS")),
            most_channels: least("NCCL_MAX_CTAS").or_else(|| least("NCCL_MAX_NCHANNELS")),
            nvls: number("NCCL_NVLS_ENABLE") != Some(0),
            is_lazy: rank.nccl.is_some_and(|release| release >= RUNTIME_CONNECT)
                && number("NCCL_RUNTIME_CONNECT") != Some(0),
            cu_mem: rank.nccl.is_none_or(|release| release >= CU_MEM)
                && number("NCCL_CUMEM_ENABLE") != Some(0),
            p2p: number("NCCL_P2P_DISABLE") != Some(1),
        }
    }

    /// The buffers for one peer and channel, both directions: `ncclSendMem` and `ncclRecvMem` with what is
    /// allocated beside them (src/transport/p2p.cc, `p2pSendSetup`, `p2pRecvSetup`). A sender that is read from has
    /// the buffer of Simple (A100), else the receiver has it.
    fn peer(&self) -> u64 {
        let header = 4096;
        let written = pages(header + self.ll + self.ll128 + self.simple) + PAGE;
        let read = pages(header + self.simple) + pages(header + self.ll + self.ll128);
        written.max(read)
    }

    /// The channels for collectives: by logs of `NCCL_DEBUG=INFO` ("16 coll channels"), within
    /// `MAXCHANNELS` (src/include/device.h).
    fn channels(&self, machine: &Machine) -> Estimate<u64> {
        let usual = match (machine.nvlink, machine.capability.major) {
            (false, _) => Estimate { low: 1, expected: 4, high: 8 },
            (true, ..8) => Estimate { low: 2, expected: 12, high: 32 },
            (true, 8 | 9) => Estimate { low: 4, expected: 24, high: 32 },
            (true, _) => Estimate { low: 4, expected: 32, high: 64 },
        };
        let within = |channels: u64| {
            let least = self.least_channels.unwrap_or(1).min(64);
            let most = self.most_channels.unwrap_or(64).clamp(1, 64);
            channels.max(least).min(most)
        };
        Estimate {
            low: within(usual.low),
            expected: within(usual.expected),
            high: within(usual.high),
        }
    }

    /// The buffers of NVLink SHARP: for each channel and GPU, both directions (src/transport/nvls.cc,
    /// `ncclNvlsSetup`, `ncclNvlsBufferSetup`).
    fn nvls(&self, machine: &Machine, local: u64) -> Estimate<u64> {
        let is_possible = self.nvls && machine.nvlink && machine.capability.major >= 9 && local > 2;
        if !is_possible {
            return Estimate::default();
        }
        let is_before = |release| self.release.is_none_or(|found| found < release);
        // Eight steps of 128 KiB (`NCCL_NVLS_CHUNKSIZE`).
        let steps = 1 << 20;
        let buffer = match () {
            () if self.release.is_some() && is_before(SMALL_NVLS_CHUNKS) => self.simple + PAGE,
            () if is_before(NVLS_WITHOUT_CREDITS) => steps + PAGE,
            () => steps,
        };
        let channels = if machine.capability.major >= 10 { 32 } else { 16 };
        let channels = channels.min(self.most_channels.unwrap_or(channels));
        let bytes = channels * 2 * buffer * local;
        let whole = bytes.div_ceil(MULTICAST) * MULTICAST;
        let oldest = channels * 2 * (self.simple + PAGE) * local;
        let high = if self.release.is_none() { oldest } else { bytes };
        Estimate {
            low: 0,
            expected: if is_before(NVLS_IN_PAGES) { whole } else { bytes },
            high: high.div_ceil(MULTICAST) * MULTICAST,
        }
    }
}

impl Machine {
    /// Boards for servers in which NVLink connects all GPUs, by the names that NVIDIA gives them. A device of which
    /// only the memory is known is taken for one, as its context is.
    fn of(device: &Device) -> Self {
        let boards = ["SXM", "HBM3", "H200", "B200"];
        let is_known = !device.is_custom();
        Self {
            is_known,
            nvlink: !is_known || boards.iter().any(|board| device.title.contains(board)),
            capability: device.compute_capability,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NcclMemory;
    use xmem_analyzer::Collectives;
    use xmem_analyzer::recording::Rank;
    use xmem_types::Bytes;

    const TREE: Collectives = collectives(true, false);
    const RING: Collectives = collectives(false, false);

    const fn collectives(all_reduce: bool, all_to_all: bool) -> Collectives {
        Collectives::of(all_reduce, all_to_all)
    }

    fn rank(world_size: u32, nodes: u32, communicators: &[u32], release: u32) -> Rank {
        let mut rank = Rank::of(0, world_size);
        rank.nodes = Some(nodes);
        rank.backend = Some("nccl".to_owned());
        rank.nccl = Some((2, release, 0));
        rank.communicators = Some(communicators.to_vec());
        rank
    }

    /// Least, expected and most, in MiB.
    fn mib(rank: &Rank, uses: Collectives, variables: &[(&str, &str)], device: &str) -> [u64; 3] {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let device = xmem_devices::find(device).expect("a device");
        let memory = NcclMemory::of(rank, uses, &variables, device).expect("NCCL");
        [memory.low, memory.expected, memory.high].map(|bytes| bytes.get() >> 20)
    }

    #[test]
    fn buffers_follow_ranks_machines_releases_and_variables() {
        let eight = || rank(8, 1, &[8], 28);
        let none: &[(&str, &str)] = &[];
        for (rank, uses, variables, device, expected) in [
            // 24 channels of 12 MiB, with three tables of 2 MiB each.
            (eight(), RING, none, "a100-80g", [48, 432, 962]),
            (eight(), TREE, none, "a100-80g", [48, 720, 962]),
            // NVLink SHARP: 16 channels of 2 x 1 MiB for each GPU.
            (eight(), TREE, none, "h100-80g", [48, 976, 1474]),
            (eight(), TREE, &[("NCCL_NVLS_ENABLE", "0")], "h100-80g", [48, 720, 962]),
            // Before 2.21, with the buffer of 4 MiB.
            (rank(8, 1, &[8], 18), TREE, none, "h100-80g", [96, 2112, 2498]),
            (rank(2, 1, &[2], 28), TREE, none, "a100-80g", [48, 432, 578]),
            (eight(), RING, &[("NCCL_MAX_NCHANNELS", "2")], "a100-80g", [24, 36, 62]),
            (eight(), RING, &[("NCCL_BUFFSIZE", "1048576")], "a100-80g", [40, 384, 834]),
            (eight(), RING, &[("NCCL_CUMEM_ENABLE", "0")], "a100-80g", [48, 288, 962]),
            (eight(), RING, &[("NCCL_RUNTIME_CONNECT", "0")], "a100-80g", [96, 720, 962]),
            (eight(), RING, none, "t4-16g", [0, 72, 242]),
            (rank(16, 2, &[16], 28), RING, none, "a100-80g", [48, 492, 1442]),
            (rank(16, 16, &[16], 28), RING, none, "a100-80g", [0, 624, 2882]),
            (rank(8, 1, &[8, 4, 2], 28), RING, none, "a100-80g", [144, 1296, 2502]),
        ] {
            let found = mib(&rank, uses, variables, device);
            assert_eq!(found, expected, "{rank:?} {uses:?} {variables:?} {device}");
        }
    }

    #[test]
    fn published_measurements_lie_in_the_range() {
        let all_to_all = collectives(false, true);
        for (rank, uses, device, measured) in [
            // NVIDIA/nccl, issue 964: groups of two, and of more of 4 A100.
            (rank(4, 1, &[2], 18), TREE, "a100-80g", 544),
            (rank(4, 1, &[4], 18), TREE, "a100-80g", 688),
            // Issue 1685: an exchange of each with each of 8 H100 takes 3.28 GB more.
            (rank(8, 1, &[8], 26), all_to_all, "h100-80g", 3128),
            // Issue 864: about 1.6 GB for a communicator.
            (rank(8, 1, &[8], 18), TREE, "h100-80g", 1526),
        ] {
            let [low, _, high] = mib(&rank, uses, &[], device);
            assert!((low..=high).contains(&measured), "{rank:?}: {low} to {high}");
        }
    }

    #[test]
    fn groups_that_may_not_be_used_widen_the_range() {
        let mut rank = rank(8, 1, &[], 28);
        rank.communicators = None;
        rank.groups = vec![8, 4];
        assert_eq!(mib(&rank, RING, &[], "a100-80g"), [48, 864, 1924]);
        rank.groups = Vec::new();
        assert_eq!(mib(&rank, RING, &[], "a100-80g"), [48, 432, 962]);
    }

    #[test]
    fn what_cannot_be_is_bounded() {
        let all = vec![u32::MAX; 4096];
        let max = u64::MAX.to_string();
        let variables = [("NCCL_BUFFSIZE", max.as_str()), ("NCCL_MIN_CTAS", max.as_str())];
        let all_to_all = collectives(true, true);
        for release in [18, 21, 28] {
            let rank = rank(u32::MAX, 1, &all, release);
            let [_, _, high] = mib(&rank, all_to_all, &variables, "b200-180g");
            assert_eq!(high, 1 << 30);
        }
    }

    #[test]
    fn what_is_not_nccl_takes_nothing() {
        let device = xmem_devices::find("a100-80g").expect("a device");
        for backend in [None, Some("gloo")] {
            let mut rank = rank(8, 1, &[8], 28);
            rank.backend = backend.map(str::to_owned);
            assert_eq!(NcclMemory::of(&rank, TREE, &[], device), None);
        }
        assert_eq!(NcclMemory::of(&rank(8, 1, &[], 28), TREE, &[], device), None);
    }

    #[test]
    fn a_device_has_less_memory_with_it() {
        let device = xmem_devices::find("a100-80g").expect("a device");
        let memory = NcclMemory::of(&rank(8, 1, &[8], 28), RING, &[], device).expect("NCCL");
        let mut less = device.clone();
        memory.take_from(&mut less);
        assert_eq!(device.available() - less.available(), Bytes::mib(432));
        let (low, high) = device.context_bounds();
        assert_eq!(less.context_bounds(), (low + Bytes::mib(48), high + Bytes::mib(962)));
    }
}
