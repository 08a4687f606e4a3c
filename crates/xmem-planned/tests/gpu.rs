//! The native allocator against slow replays: its part that follows a plan against `Follower`, its caching part against the
//! simulator of PyTorch's allocator.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(clippy::disallowed_methods, reason = "tests read what a program has written")]

mod driver;

use driver::{Program, check_follows, lines, sources};
use std::collections::{BTreeMap, BTreeSet};
use xmem_planned::{FollowedPlan, FollowedRequest};
use xmem_simulator::{
    AllocatorChoice, Device, DeviceConfig, Framework, FrameworkAllocator, ReplayDriver,
    RequestIndex,
};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId, Workload};

const MIB: u64 = 1 << 20;

/// The library and the program together, compiled with these flags.
fn program(flags: &[&str]) -> Option<Program> {
    let sources = [sources("native"), sources("tests/gpu")].concat();
    Program::compile(&sources, flags)
}

/// Allocations and frees by chance, of sizes around those at which the allocator decides differently.
fn random_requests(random: &mut fastrand::Rng, count: usize) -> Vec<Request> {
    let mut live: Vec<BlockId> = Vec::new();
    let mut requests = Vec::new();
    let mut blocks = 0;
    while requests.len() < count {
        if !live.is_empty() && random.u8(..) < 110 {
            let block = live.swap_remove(random.usize(..live.len()));
            requests.push(Request { block, kind: RequestKind::Free });
            continue;
        }
        let size = match random.u8(..6) {
            0 => random.u64(1..4096),
            1 => random.u64(4096..MIB + 1024),
            2 => random.u64(MIB - 512..2 * MIB),
            3 => random.u64(2 * MIB..10 * MIB + 512),
            _ => random.u64(10 * MIB..40 * MIB),
        };
        let block = BlockId::new(blocks);
        blocks += 1;
        live.push(block);
        let stream = StreamId(random.u32(0..2));
        requests.push(Request { block, kind: RequestKind::Alloc { size: Bytes(size), stream } });
    }
    requests
}

/// The reserved bytes of the simulator after these requests, and the end of what the last one got.
fn simulated(requests: &[Request]) -> (u64, BTreeMap<u32, u64>) {
    let mut allocator = AllocatorChoice::default().over(Device::new(&DeviceConfig::default()), ());
    allocator.lift_limit();
    let mut driver = ReplayDriver::new(allocator, Workload::from(requests));
    let mut sizes = BTreeMap::new();
    for (at, request) in requests.iter().enumerate() {
        let before = driver.allocator().reserved();
        driver.serve_lifting_limits(RequestIndex(at), request);
        if matches!(request.kind, RequestKind::Alloc { .. }) {
            sizes.insert(request.block.0, (driver.allocator().reserved() - before).get());
        }
    }
    (driver.allocator().reserved().get(), sizes)
}

#[test]
fn what_is_not_planned_is_served_as_pytorch_serves_it() {
    let driver = program(&[]).expect("compiled");
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let requests = random_requests(&mut random, 600);
        let printed = driver.run(&lines(&requests));
        let (reserved, grown) = simulated(&requests);
        let end = printed.last().expect("an end");
        assert!(end.starts_with(&format!("end reserved {reserved} used {reserved} ")), "{end}");
        // A segment is obtained for the same requests: only these have new addresses.
        let mut known: BTreeSet<u64> = BTreeSet::new();
        for line in &printed[..printed.len() - 1] {
            let words: Vec<&str> = line.split(' ').collect();
            let [id, "at", address] = words[..] else { panic!("{line}") };
            let (id, address): (u32, u64) = (id.parse().expect("id"), address.parse().expect("at"));
            let is_new = known.insert(address / (32 * MIB)) && address % (32 * MIB) == 0;
            assert_eq!(is_new, grown[&id] > 0, "seed {seed}: {line}");
        }
    }
}

#[test]
fn requests_get_the_places_that_a_slow_replay_gives_them() {
    check_follows(&program(&[]).expect("compiled"), 512, 0..60);
}

#[test]
fn memory_is_touched_as_the_sanitizers_allow() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let Some(driver) = program(&flags) else { return };
    check_follows(&driver, 512, 100..110);
    let mut random = fastrand::Rng::with_seed(7);
    driver.run(&lines(&random_requests(&mut random, 2000)));
}

#[test]
fn a_block_that_another_stream_uses_is_not_given_out_before_that_stream_is_done() {
    let driver = program(&[]).expect("compiled");
    for (planned, first) in [(false, "at 0"), (true, "plan 0")] {
        let request = FollowedRequest {
            least: Bytes(512),
            most: Bytes(512),
            place: planned.then_some((0, Bytes(0))),
        };
        driver.plan(&FollowedPlan {
            arenas: [Bytes(512), Bytes(0)],
            warm_up: Vec::new(),
            iteration: vec![request; 4],
        });
        let text = "open plan\nm\na 1 512 0\nu 1 5\nf 1\na 2 512 0\nf 2\nd 5\na 3 512 0\n";
        let printed = driver.run(text);
        assert_eq!(printed[0], format!("1 {first}"));
        assert_ne!(printed[1], format!("2 {first}"), "in use on stream 5");
        assert_eq!(printed[2], format!("3 {first}"), "the stream is done");
    }
}

/// A plan of blocks of 2 MiB, one behind the other.
fn plan_of_large_blocks(count: u64) -> FollowedPlan {
    let size = Bytes(2 * MIB);
    let request = |number| FollowedRequest {
        least: size,
        most: size,
        place: Some((0, Bytes(number * size.get()))),
    };
    FollowedPlan {
        arenas: [Bytes(count * size.get()), Bytes(0)],
        warm_up: Vec::new(),
        iteration: (0..count).map(request).collect(),
    }
}

#[test]
fn requests_that_differ_from_the_plan_lie_in_its_gaps() {
    let driver = program(&[]).expect("compiled");
    driver.plan(&plan_of_large_blocks(4));
    let large = 2 * MIB;
    let [unknown, larger] = [large - 4096, 3 * MIB];
    let text = format!(
        "open plan\nm\na 1 {large} 0\na 2 {large} 0\na 3 {large} 0\nf 2\n\
         a 4 {unknown} 0\na 5 {larger} 0\na 6 {large} 0\na 7 {MIB} 0\na 8 {unknown} 5\n"
    );
    let printed = driver.run(&text);
    let at = |mib: u64| format!("plan {}", mib * MIB);
    assert_eq!(printed[3], format!("4 {}", at(2)), "in the gap");
    assert_eq!(printed[4], format!("5 {}", at(6)), "behind the blocks");
    assert_eq!(printed[5], format!("6 {}", at(9)), "its own address is in use");
    assert!(printed[6].starts_with("7 at"), "a small one: {}", printed[6]);
    assert!(printed[7].starts_with("8 at"), "on another stream: {}", printed[7]);
    assert!(printed[8].ends_with("planned 3 fitted 3 collisions 0"), "{}", printed[8]);
}

#[test]
fn a_gap_that_another_stream_still_uses_is_not_given_out() {
    let driver = program(&[]).expect("compiled");
    driver.plan(&plan_of_large_blocks(3));
    let (large, unknown) = (2 * MIB, 2 * MIB - 4096);
    let text = format!(
        "open plan\nm\na 1 {large} 0\na 2 {unknown} 0\na 3 {large} 0\nu 2 5\nf 2\n\
         a 4 {unknown} 0\nf 4\nd 5\na 5 {unknown} 0\n"
    );
    let printed = driver.run(&text);
    let at = |bytes: u64| format!("plan {bytes}");
    assert_eq!(printed[1], format!("2 {}", at(large)));
    assert_eq!(printed[2], format!("3 {}", at(2 * large - 4096)), "its own address is in use");
    assert_eq!(printed[3], format!("4 {}", at(3 * large - 4096)), "in use on stream 5");
    assert_eq!(printed[4], format!("5 {}", at(large)), "the stream is done");
}

#[test]
fn free_memory_of_the_plan_serves_what_would_run_out_of_memory() {
    let driver = program(&[]).expect("compiled");
    let size = Bytes(8 * MIB);
    let request = FollowedRequest { least: size, most: size, place: Some((0, Bytes(0))) };
    driver.plan(&FollowedPlan {
        arenas: [size, Bytes(0)],
        warm_up: Vec::new(),
        iteration: vec![request],
    });
    let (planned, other) = (size.get(), 30 * MIB);
    let text = format!(
        "limit {}\nopen plan\nm\na 1 {planned} 0\na 2 {other} 0\nf 1\na 3 {other} 0\nf 3\nm\na 4 {planned} 0\n",
        32 * MIB
    );
    let printed = driver.run(&text);
    assert_eq!(printed[..4], ["1 plan 0", "2 none", "3 plan 0", "4 plan 0"], "{printed:?}");
}

#[test]
fn free_pages_of_the_plan_are_pages_for_the_rest_of_it() {
    let driver = program(&[]).expect("compiled");
    driver.plan(&plan_of_large_blocks(3));
    let large = 2 * MIB;
    // As much memory as two of the three need.
    let text = format!(
        "limit {}\nopen plan\nm\na 1 {large} 0\na 2 {large} 0\nf 1\na 3 {large} 0\nf 2\nf 3\n",
        4 * MIB
    );
    let printed = driver.run(&text);
    let at = |mib: u64| format!("plan {}", mib * MIB);
    let expected = [format!("1 {}", at(0)), format!("2 {}", at(2)), format!("3 {}", at(4))];
    assert_eq!(printed[..3], expected, "{printed:?}");
}

#[test]
fn the_last_two_iterations_are_written_for_another_plan() {
    let driver = program(&[]).expect("compiled");
    driver.plan(&FollowedPlan::default());
    let iteration = "a 1 512 0\na 2 1024 0\nf 1\nf 2\nm\n";
    let text = format!("open plan\nm\nobserved early\n{iteration}{iteration}observed file\n");
    let printed = driver.run(&text);
    assert_eq!((printed[0].as_str(), printed[5].as_str()), ("observed 1", "observed 0"));
    let text = std::fs::read_to_string(driver.folder.path().join("file")).expect("written");
    let observed = xmem_planned::Observed::read(&text).expect("read");
    assert_eq!((observed.requests.len(), observed.starts), (8, vec![0, 4]));
}
