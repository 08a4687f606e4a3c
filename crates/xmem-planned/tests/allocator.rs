//! The native allocator against slow replays: its part that follows a plan against `Follower`, its caching part against the
//! simulator of PyTorch's allocator.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::disallowed_methods, reason = "tests compile and run a program")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use xmem_planned::{FollowedPlan, FollowedRequest};
use xmem_planner::Follower;
use xmem_simulator::{
    AllocatorChoice, Device, DeviceConfig, Framework, FrameworkAllocator, ReplayDriver,
    RequestIndex,
};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId, Workload};

const MIB: u64 = 1 << 20;

struct Program {
    folder: TempDir,
    path: PathBuf,
}

impl Program {
    /// Compiles the library and the program together, with these flags.
    fn compile(flags: &[&str]) -> Option<Self> {
        let folder = TempDir::new().expect("made");
        let path = folder.path().join("program");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = std::fs::read_dir(root.join("native")).expect("there");
        let sources = sources.map(|entry| entry.expect("listed").path());
        let sources = sources.filter(|path| path.extension().is_some_and(|of| of == "c"));
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-O1", "-g", "-fexceptions", "-rdynamic", "-o"]).arg(&path);
        cc.args(flags).args(sources).arg(root.join("tests/program.c"));
        cc.args(["-ldl", "-lpthread"]);
        let output = cc.output().expect("a C compiler");
        output.status.success().then_some(Self { folder, path })
    }

    /// What it prints for these lines.
    fn run(&self, lines: &str) -> Vec<String> {
        let mut command = Command::new(&self.path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.current_dir(self.folder.path()).spawn().expect("it runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        let lines = lines.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("no panic").expect("written");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{errors}");
        String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
    }

    fn plan(&self, plan: &FollowedPlan) {
        std::fs::write(self.folder.path().join("plan"), plan.text()).expect("written");
    }
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

fn lines(requests: &[Request]) -> String {
    requests.iter().fold(String::new(), |mut text, request| {
        _ = match request.kind {
            RequestKind::Alloc { size, stream } => {
                writeln!(text, "a {} {} {}", request.block.0, size.get(), stream.0)
            }
            RequestKind::Free => writeln!(text, "f {}", request.block.0),
        };
        text
    })
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
    let program = Program::compile(&[]).expect("compiled");
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let requests = random_requests(&mut random, 600);
        let printed = program.run(&lines(&requests));
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

/// A plan whose places overlap by chance, and what follows it by chance.
fn random_plan(random: &mut fastrand::Rng) -> FollowedPlan {
    let request = |random: &mut fastrand::Rng| {
        let least = 512 * random.u64(1..6);
        FollowedRequest {
            least: Bytes(least),
            most: Bytes(least + 512 * random.u64(0..2)),
            place: (random.u8(..) < 200).then(|| (0, Bytes(512 * random.u64(0..64)))),
        }
    };
    let mut sequence = |count| (0..count).map(|_| request(random)).collect::<Vec<_>>();
    let (warm_up, iteration) = (sequence(30), sequence(40));
    FollowedPlan { arenas: [Bytes(1 << 20), Bytes(0)], warm_up, iteration }
}

/// The offset of each request in a slow replay of the plan; none if it is served elsewhere.
fn followed(plan: &FollowedPlan, requests: &[Option<Request>]) -> BTreeMap<u32, Option<u64>> {
    let sizes = |requests: &[FollowedRequest]| {
        requests.iter().map(|request| request.least..=request.most).collect::<Vec<_>>()
    };
    let sequences = [&plan.warm_up, &plan.iteration];
    let ranges = sequences.map(|requests| sizes(requests));
    let (mut follower, mut now) = (Follower::default(), 0);
    let mut live: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut served = BTreeMap::new();
    for request in requests {
        let Some(request) = request else {
            now = 1;
            follower.mark();
            continue;
        };
        let RequestKind::Alloc { size, .. } = request.kind else {
            live.remove(&request.block.0);
            continue;
        };
        let size = size.get().next_multiple_of(512);
        let place =
            follower.next(Bytes(size), &ranges[now]).and_then(|at| sequences[now][at].place);
        let offset = place.map(|(_, offset)| offset.get());
        let is_free = |offset: &u64| {
            live.values().all(|&(start, end)| end <= *offset || *offset + size <= start)
        };
        let offset = offset.filter(is_free);
        if let Some(offset) = offset {
            live.insert(request.block.0, (offset, offset + size));
        }
        served.insert(request.block.0, offset);
    }
    served
}

/// Runs of the plan with requests that come and go. None is a mark.
fn random_run(random: &mut fastrand::Rng, plan: &FollowedPlan) -> Vec<Option<Request>> {
    let mut requests = Vec::new();
    let mut live: Vec<BlockId> = Vec::new();
    let mut blocks = 0;
    let parts = [&plan.warm_up, &plan.iteration, &plan.iteration, &plan.iteration];
    for (number, part) in parts.into_iter().enumerate() {
        if number > 0 {
            requests.push(None);
        }
        for planned in part {
            let extra = match random.u8(..20) {
                0 => continue,
                1 => Some(512 * random.u64(1..8)),
                _ => None,
            };
            let usual = random.u64(planned.least.get() - 511..=planned.most.get());
            for size in extra.into_iter().chain([usual]) {
                let block = BlockId::new(blocks);
                blocks += 1;
                live.push(block);
                let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId(0) };
                requests.push(Some(Request { block, kind }));
            }
            while live.len() > random.usize(1..12) {
                let block = live.swap_remove(random.usize(..live.len()));
                requests.push(Some(Request { block, kind: RequestKind::Free }));
            }
        }
    }
    requests
}

fn check_follows(program: &Program, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let plan = random_plan(&mut random);
        program.plan(&plan);
        let requests = random_run(&mut random, &plan);
        let mut text = "open plan\n".to_owned();
        for request in &requests {
            match request {
                None => text.push_str("m\n"),
                Some(request) => text.push_str(&lines(&[*request])),
            }
        }
        let printed = program.run(&text);
        let expected = followed(&plan, &requests);
        let planned = expected.values().flatten().count();
        let end = printed.last().expect("an end");
        assert!(end.ends_with(&format!("planned {planned} collisions 0")), "seed {seed}: {end}");
        for line in &printed[..printed.len() - 1] {
            let words: Vec<&str> = line.split(' ').collect();
            let id: u32 = words[0].parse().expect("id");
            let offset = (words[1] == "plan").then(|| words[2].parse().expect("an offset"));
            assert_eq!(offset, expected[&id], "seed {seed}: {line}");
        }
        assert!(planned > 0, "seed {seed}");
    }
}

#[test]
fn requests_get_the_places_that_a_slow_replay_gives_them() {
    check_follows(&Program::compile(&[]).expect("compiled"), 0..60);
}

#[test]
fn memory_is_touched_as_the_sanitizers_allow() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let Some(program) = Program::compile(&flags) else { return };
    check_follows(&program, 100..110);
    let mut random = fastrand::Rng::with_seed(7);
    program.run(&lines(&random_requests(&mut random, 2000)));
}

#[test]
fn a_block_that_another_stream_uses_is_not_given_out_before_that_stream_is_done() {
    let program = Program::compile(&[]).expect("compiled");
    for (planned, first) in [(false, "at 0"), (true, "plan 0")] {
        let request = FollowedRequest {
            least: Bytes(512),
            most: Bytes(512),
            place: planned.then_some((0, Bytes(0))),
        };
        program.plan(&FollowedPlan {
            arenas: [Bytes(512), Bytes(0)],
            warm_up: Vec::new(),
            iteration: vec![request; 4],
        });
        let text = "open plan\nm\na 1 512 0\nu 1 5\nf 1\na 2 512 0\nf 2\nd 5\na 3 512 0\n";
        let printed = program.run(text);
        assert_eq!(printed[0], format!("1 {first}"));
        assert_ne!(printed[1], format!("2 {first}"), "in use on stream 5");
        assert_eq!(printed[2], format!("3 {first}"), "the stream is done");
    }
}

#[test]
fn free_memory_of_the_plan_serves_what_would_run_out_of_memory() {
    let program = Program::compile(&[]).expect("compiled");
    let size = Bytes(8 * MIB);
    let request = FollowedRequest { least: size, most: size, place: Some((0, Bytes(0))) };
    program.plan(&FollowedPlan {
        arenas: [size, Bytes(0)],
        warm_up: Vec::new(),
        iteration: vec![request],
    });
    let (planned, other) = (size.get(), 30 * MIB);
    let text = format!(
        "limit {}\nopen plan\nm\na 1 {planned} 0\na 2 {other} 0\nf 1\na 3 {other} 0\nf 3\nm\na 4 {planned} 0\n",
        32 * MIB
    );
    let printed = program.run(&text);
    assert_eq!(printed[..4], ["1 plan 0", "2 none", "3 at 0", "4 plan 0"], "{printed:?}");
}

#[test]
fn the_last_two_iterations_are_written_for_another_plan() {
    let program = Program::compile(&[]).expect("compiled");
    program.plan(&FollowedPlan::default());
    let iteration = "a 1 512 0\na 2 1024 0\nf 1\nf 2\nm\n";
    let text = format!("open plan\nm\nobserved early\n{iteration}{iteration}observed file\n");
    let printed = program.run(&text);
    assert_eq!((printed[0].as_str(), printed[5].as_str()), ("observed 1", "observed 0"));
    let text = std::fs::read_to_string(program.folder.path().join("file")).expect("written");
    let observed = xmem_planned::Observed::read(&text).expect("read");
    assert_eq!((observed.requests.len(), observed.starts), (8, vec![0, 4]));
}
