//! Programs in C that drive an allocator, and plans by chance, which are followed in a slow replay, too.
#![allow(clippy::disallowed_methods, reason = "tests compile and run a program")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use xmem_planned::{FollowedPlan, FollowedRequest};
use xmem_planner::Follower;
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};

const MIB: u64 = 1 << 20;

/// The files in C of a folder of this crate.
pub(crate) fn sources(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).expect("there");
    let files = files.map(|entry| entry.expect("listed").path());
    files.filter(|path| path.extension().is_some_and(|of| of == "c")).collect()
}

/// A program that drives an allocator by lines on standard input.
pub(crate) struct Program {
    pub(crate) folder: TempDir,
    path: PathBuf,
}

impl Program {
    /// Compiles these sources, below the folder of this crate, with these flags. None if the compiler lacks one of them.
    pub(crate) fn compile(sources: &[PathBuf], flags: &[&str]) -> Option<Self> {
        let folder = TempDir::new().expect("made");
        let path = folder.path().join("program");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-O1", "-g", "-fexceptions", "-rdynamic", "-o"]).arg(&path);
        cc.args(flags).args(sources).args(["-ldl", "-lpthread"]);
        let output = cc.output().expect("a C compiler");
        output.status.success().then_some(Self { folder, path })
    }

    /// What it prints for these lines.
    pub(crate) fn run(&self, lines: &str) -> Vec<String> {
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

    pub(crate) fn plan(&self, plan: &FollowedPlan) {
        std::fs::write(self.folder.path().join("plan"), plan.text()).expect("written");
    }
}

/// The requests as lines for the program.
pub(crate) fn lines(requests: &[Request]) -> String {
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

/// A plan whose sizes and places, multiples of `grain`, overlap by chance.
fn random_plan(random: &mut fastrand::Rng, grain: u64) -> FollowedPlan {
    let request = |random: &mut fastrand::Rng| {
        let least = grain * random.u64(1..6);
        FollowedRequest {
            least: Bytes(least),
            most: Bytes(least + grain * random.u64(0..2)),
            place: (random.u8(..) < 200).then(|| (0, Bytes(grain * random.u64(0..64)))),
        }
    };
    let mut sequence = |count| (0..count).map(|_| request(random)).collect::<Vec<_>>();
    let (warm_up, iteration) = (sequence(30), sequence(40));
    FollowedPlan { arenas: [Bytes(grain * 70), Bytes(0)], warm_up, iteration }
}

/// What a slow replay of a plan has.
#[derive(Default)]
struct Replayed {
    /// The offset of each request; none if it is served elsewhere.
    offsets: BTreeMap<u32, Option<u64>>,
    planned: usize,
    fitted: usize,
}

/// The start of the smallest gap between live blocks, else their end.
fn gap(live: &BTreeMap<u32, (u64, u64)>, size: u64) -> u64 {
    let mut blocks: Vec<(u64, u64)> = live.values().copied().collect();
    blocks.sort_unstable();
    let starts = [0].into_iter().chain(blocks.iter().map(|block| block.1));
    let gaps = starts.zip(&blocks).map(|(start, block)| (block.0 - start, start));
    let gap = gaps.filter(|&(bytes, _)| bytes >= size).min();
    gap.map_or_else(|| blocks.last().map_or(0, |block| block.1), |(_, start)| start)
}

fn followed(plan: &FollowedPlan, requests: &[Option<Request>], unit: u64) -> Replayed {
    let sizes = |requests: &[FollowedRequest]| {
        requests.iter().map(|request| request.least..=request.most).collect::<Vec<_>>()
    };
    let sequences = [&plan.warm_up, &plan.iteration];
    let ranges = sequences.map(|requests| sizes(requests));
    let (mut follower, mut now) = (Follower::default(), 0);
    let mut live: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut replayed = Replayed::default();
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
        let size = size.get().next_multiple_of(unit);
        let place = follower.next(Bytes(size), &ranges[now]).map(|at| sequences[now][at].place);
        let is_free = |offset: &u64| {
            live.values().all(|&(start, end)| end <= *offset || *offset + size <= start)
        };
        let offset = match place {
            Some(None) => None,
            Some(Some((_, offset))) if is_free(&offset.get()) => {
                replayed.planned += 1;
                Some(offset.get())
            }
            _ if size <= MIB => None,
            _ => {
                replayed.fitted += 1;
                Some(gap(&live, size))
            }
        };
        live.extend(offset.map(|offset| (request.block.0, (offset, offset + size))));
        replayed.offsets.insert(request.block.0, offset);
    }
    replayed
}

/// Runs of the plan with requests that come and go. None is a mark.
fn random_run(
    random: &mut fastrand::Rng,
    plan: &FollowedPlan,
    (unit, grain): (u64, u64),
) -> Vec<Option<Request>> {
    let mut requests = Vec::new();
    let mut live: Vec<BlockId> = Vec::new();
    let mut blocks = 0;
    let most = if random.bool() { 12 } else { 60 };
    let parts = [&plan.warm_up, &plan.iteration, &plan.iteration, &plan.iteration];
    for (number, part) in parts.into_iter().enumerate() {
        if number > 0 {
            requests.push(None);
        }
        for planned in part {
            let extra = match random.u8(..20) {
                0 => continue,
                1 => Some(grain * random.u64(1..8)),
                _ => None,
            };
            let usual = random.u64(planned.least.get() - (unit - 1)..=planned.most.get());
            for size in extra.into_iter().chain([usual]) {
                let block = BlockId::new(blocks);
                blocks += 1;
                live.push(block);
                let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId(0) };
                requests.push(Some(Request { block, kind }));
            }
            while live.len() > random.usize(1..most) {
                let block = live.swap_remove(random.usize(..live.len()));
                requests.push(Some(Request { block, kind: RequestKind::Free }));
            }
        }
    }
    requests
}

/// Checks that requests get the places of a plan that a slow replay gives them. Every other plan has requests that are large
/// enough for gaps.
pub(crate) fn check_follows(program: &Program, unit: u64, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let grain = if seed % 2 == 0 { unit } else { MIB / 4 };
        let plan = random_plan(&mut random, grain);
        program.plan(&plan);
        let requests = random_run(&mut random, &plan, (unit, grain));
        let mut text = "open plan\n".to_owned();
        for request in &requests {
            match request {
                None => text.push_str("m\n"),
                Some(request) => text.push_str(&lines(&[*request])),
            }
        }
        let printed = program.run(&text);
        let Replayed { offsets, planned, fitted } = followed(&plan, &requests, unit);
        let end = printed.last().expect("an end");
        let counted = format!("planned {planned} fitted {fitted} collisions 0");
        assert!(end.ends_with(&counted), "seed {seed}: {end}, not {counted}");
        for line in &printed[..printed.len() - 1] {
            let words: Vec<&str> = line.split(' ').collect();
            let id: u32 = words[0].parse().expect("id");
            let offset = (words[1] == "plan").then(|| words[2].parse().expect("an offset"));
            assert_eq!(offset, offsets[&id], "seed {seed}: {line}");
        }
        assert!(planned > 0 && (fitted > 0) == (grain > unit), "seed {seed}");
    }
}
