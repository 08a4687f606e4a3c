//! One text file per case in `filetests/`: a script, and below each step the state that it must
//! lead to. `XMEM_BLESS=1 cargo test -p xmem-simulator --test filetests` writes the states anew.
//!
//! A file starts with `#` lines that say what is shown and which function of PyTorch or TensorFlow
//! decides it. Then, one a line:
//!
//! | line | |
//! |---|---|
//! | `allocator tf-bfc` | optional, first: TensorFlow's allocator |
//! | `device capacity=SIZE taken=SIZE order=driver\|ascending\|descending` | optional |
//! | `option NAME=VALUE` | optional: see `pytorch_option` and `bfc_option` |
//! | `alloc NAME SIZE [stream=N]` | |
//! | `free NAME...` | |
//! | `release` | gives everything cached back (`torch.cuda.empty_cache`) |
//! | `replay` | sends all requests so far through `replay` and `min_capacity` |
//!
//! Lines that start with `>` are the expectation. Addresses count from the first segment's start.

#![expect(clippy::disallowed_methods, reason = "the test cases are files")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use xmem_simulator::{
    AddressOrder, AllocFailure, AllocatorChoice, AllocatorConfig, BfcConfig, BlockHandle, BlockUse,
    ChosenAllocator, Device, DeviceConfig, Event, EventAction, Framework, FrameworkAllocator,
    MemoryLimit, PoolKind, PowerOfTwoDivisions, RequestIndex, SegmentState, min_capacity, replay,
};
use xmem_types::{BlockId, Bytes, KIB, MIB, Request, RequestKind, StreamId};

#[test]
fn every_file_leads_to_the_states_it_tells() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let bless = std::env::var_os("XMEM_BLESS").is_some();
    let mut files = 0;
    let mut failures = String::new();
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("a readable entry").path();
        if path.extension().is_none_or(|e| e != "alloc") {
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&path).expect("readable");
        let name = path.file_name().expect("a file").to_string_lossy();
        assert!(text.starts_with("# "), "{name}: the first line says what is shown");
        let cites = [".cpp", ".cc", ".h"].iter().any(|source| text.contains(source));
        assert!(cites, "{name}: cites no source");
        let actual = run(&text, &name);
        if actual == text {
            continue;
        }
        if bless {
            fs::write(&path, actual).expect("writable");
        } else {
            let diff = first_difference(&text, &actual);
            writeln!(failures, "{name}: {diff}").expect("a string");
        }
    }
    assert!(files >= 45, "only {files} files found");
    assert!(failures.is_empty(), "\n{failures}(XMEM_BLESS=1 accepts what the simulator says)");
}

fn first_difference(want: &str, got: &str) -> String {
    let line = want.lines().zip(got.lines()).position(|(w, g)| w != g);
    let line = line.unwrap_or_else(|| want.lines().count().min(got.lines().count()));
    let of = |text: &str| text.lines().nth(line).unwrap_or("(end of file)").to_owned();
    format!("line {}:\n  file:      {}\n  simulator: {}", line + 1, of(want), of(got))
}

/// The file as it should be: its script, with what the simulator says after each step.
fn run(text: &str, name: &str) -> String {
    let mut out = String::new();
    let mut case = Case::default();
    for (row, line) in text.lines().enumerate() {
        if line.starts_with('>') {
            continue;
        }
        writeln!(out, "{line}").expect("a string");
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() || line.starts_with('#') {
            continue;
        }
        for said in case.step(&words).unwrap_or_else(|e| panic!("{name}:{}: {e}", row + 1)) {
            writeln!(out, "> {}", said.trim_end()).expect("a string");
        }
    }
    out
}

#[derive(Default)]
struct Case {
    choice: AllocatorChoice,
    device: DeviceConfig,
    /// Made at the first step, when device and options are known.
    allocator: Option<ChosenAllocator<Vec<Event>>>,
    handles: HashMap<String, Option<BlockHandle>>,
    numbers: HashMap<String, BlockId>,
    requests: Vec<Request>,
    told: usize,
}

impl Case {
    fn step(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        match *words {
            ["allocator", "tf-bfc"] => {
                self.choice = AllocatorChoice::Bfc(BfcConfig::default());
                Ok(Vec::new())
            }
            ["device", ref settings @ ..] => self.set_device(settings).map(|()| Vec::new()),
            ["option", setting] => self.set_option(setting).map(|()| Vec::new()),
            ["alloc", name, size] => self.alloc(name, size, 0),
            ["alloc", name, size, stream] => {
                let stream = stream.strip_prefix("stream=").and_then(|n| n.parse().ok());
                self.alloc(name, size, stream.ok_or("stream=N")?)
            }
            ["free", ref names @ ..] => self.free(names),
            ["release"] => {
                let at = RequestIndex(self.requests.len());
                self.allocator().release_cached(at);
                Ok(self.state())
            }
            ["replay"] => Ok(self.replay()),
            _ => Err("not understood".to_owned()),
        }
    }

    fn set_device(&mut self, settings: &[&str]) -> Result<(), String> {
        for setting in settings {
            match setting.split_once('=').ok_or("key=value")? {
                ("capacity", size) => self.device.capacity = Some(bytes(size)?),
                ("taken", size) => self.device.taken = bytes(size)?,
                ("order", "driver") => self.device.address_order = AddressOrder::Driver,
                ("order", "ascending") => self.device.address_order = AddressOrder::Ascending,
                ("order", "descending") => self.device.address_order = AddressOrder::Descending,
                (key, _) => return Err(format!("unknown setting {key}")),
            }
        }
        Ok(())
    }

    fn set_option(&mut self, setting: &str) -> Result<(), String> {
        let (key, value) = setting.split_once('=').ok_or("key=value")?;
        match &mut self.choice {
            AllocatorChoice::Caching(config) => pytorch_option(config, key, value),
            AllocatorChoice::Bfc(config) => bfc_option(config, key, value),
            _ => Err("this allocator has no options".to_owned()),
        }
    }

    fn allocator(&mut self) -> &mut ChosenAllocator<Vec<Event>> {
        self.allocator
            .get_or_insert_with(|| self.choice.over(Device::new(&self.device), Vec::new()))
    }

    fn alloc(&mut self, name: &str, size: &str, stream: u32) -> Result<Vec<String>, String> {
        let (size, stream) = (bytes(size)?, StreamId(stream));
        let at = RequestIndex(self.requests.len());
        let block = BlockId::new(self.numbers.len());
        self.numbers.insert(name.to_owned(), block);
        self.requests.push(Request { block, kind: RequestKind::Alloc { size, stream } });
        let result = self.allocator().allocate(at, size, stream);
        if let Err(AllocFailure::TooLarge) = result {
            return Ok(vec!["refused".to_owned()]);
        }
        let handle = result.unwrap_or_default();
        self.handles.insert(name.to_owned(), handle);
        Ok(self.state())
    }

    fn free(&mut self, names: &[&str]) -> Result<Vec<String>, String> {
        for name in names {
            let at = RequestIndex(self.requests.len());
            let block = *self.numbers.get(*name).ok_or(format!("{name} was not allocated"))?;
            self.requests.push(Request { block, kind: RequestKind::Free });
            if let Some(handle) = self.handles.remove(*name).flatten() {
                self.allocator().free(at, handle);
            }
        }
        Ok(self.state())
    }

    /// The segment events since the last step, the figures, and every segment with its blocks.
    fn state(&mut self) -> Vec<String> {
        self.allocator();
        let allocator = self.allocator.as_ref().expect("just made");
        let base = allocator.segments().first().map_or(0, |s| s.addr.0);
        let offset = |addr: u64| signed(addr.cast_signed() - base.cast_signed());
        let mut lines = Vec::new();
        for event in &allocator.observer()[self.told..] {
            match event.action {
                EventAction::SegmentAlloc | EventAction::SegmentFree => lines.push(format!(
                    "{} {} at {}",
                    event.action.name(),
                    short(event.size),
                    offset(event.addr.0)
                )),
                EventAction::Oom => {
                    lines.push(format!(
                        "oom {} free {}",
                        short(event.size),
                        short(Bytes(event.addr.0))
                    ));
                }
                _ => {}
            }
        }
        self.told = allocator.observer().len();
        let stats = allocator.stats();
        lines.push(format!(
            "allocated {} requested {} reserved {} split {}x {} retries {} ooms {}",
            short(stats.allocated_bytes.all.current),
            short(stats.requested_bytes.all.current),
            short(stats.reserved_bytes.all.current),
            stats.inactive_split.all.current,
            short(stats.inactive_split_bytes.all.current),
            stats.num_alloc_retries,
            stats.num_ooms
        ));
        let names: HashMap<u64, &str> = self
            .handles
            .iter()
            .filter_map(|(name, h)| Some((allocator.block((*h)?).addr.0, name.as_str())))
            .collect();
        for segment in allocator.state() {
            let blocks: Vec<String> = segment
                .blocks
                .iter()
                .map(|b| match b.used {
                    BlockUse::Allocated => format!("{} {}", names[&b.addr.0], short(b.size)),
                    BlockUse::PendingFree => format!("pending {}", short(b.size)),
                    BlockUse::Free => format!("free {}", short(b.size)),
                })
                .collect();
            lines.push(format!(
                "  {} {}: {}",
                offset(segment.addr.0),
                self.kind(&segment),
                blocks.join(", ")
            ));
        }
        lines
    }

    /// What the segment serves.
    fn kind(&self, segment: &SegmentState) -> String {
        let pool = match (&self.choice, segment.pool) {
            (AllocatorChoice::Bfc(_), _) => return "region".to_owned(),
            (_, PoolKind::Small) => "small",
            (_, PoolKind::Large) => "large",
        };
        match segment.stream {
            StreamId(0) => pool.to_owned(),
            StreamId(n) => format!("{pool} stream {n}"),
        }
    }

    fn replay(&self) -> Vec<String> {
        let got = replay(&self.requests, &self.choice, &self.device);
        let name = |block: BlockId| {
            let known = self.numbers.iter().find(|(_, number)| **number == block);
            known.map_or("?", |(name, _)| name.as_str())
        };
        let mut lines = vec![match got.oom {
            None => "fits".to_owned(),
            Some(oom) => format!(
                "out of memory at request {} ({}): tried {}, allocated {}, reserved {}, device \
                 free {}, largest cached {}, needed {}",
                oom.request,
                name(oom.block),
                short(oom.tried),
                short(oom.allocated),
                short(oom.reserved),
                short(oom.device_free),
                short(oom.largest_cached),
                short(oom.needed)
            ),
        }];
        let live: Vec<&str> = got.live_at_peak.iter().map(|b| name(b.block)).collect();
        lines.push(format!(
            "peak allocated {} at request {}: {}",
            short(got.peak.allocated),
            got.peak.request,
            live.join(" ")
        ));
        lines.push(format!(
            "peak reserved {} at request {}",
            short(got.reserved_peak.reserved),
            got.reserved_peak.request
        ));
        for (at, f) in
            [("allocated", got.fragmentation), ("reserved", got.fragmentation_at_reserved_peak)]
        {
            lines.push(format!(
                "at peak {at}: {} segments, {} free in {} blocks, largest {}, releasable {}",
                f.segments,
                short(f.free),
                f.free_blocks,
                short(f.largest_free),
                short(f.releasable)
            ));
        }
        lines.push(format!(
            "unlimited: allocated {} reserved {}",
            short(got.unlimited.allocated),
            short(got.unlimited.reserved)
        ));
        let smallest = min_capacity(&self.requests, &self.choice, &self.device);
        lines.push(format!("runs in {}", short(smallest)));
        for d in got.diagnostics.iter() {
            lines.push(format!("{}: {}", d.code, d.message));
        }
        lines
    }
}

fn pytorch_option(config: &mut AllocatorConfig, key: &str, value: &str) -> Result<(), String> {
    match key {
        "max_split_size" => config.max_split_size = Some(bytes(value)?),
        "max_non_split_rounding" => config.max_non_split_rounding = bytes(value)?,
        "divisions" => {
            let n = value.parse().map_err(|_| "a number")?;
            config.roundup_power2_divisions = PowerOfTwoDivisions([n; 16]);
        }
        "memory_fraction" => config.memory_fraction = Some(number(value)?),
        _ => return Err(format!("unknown option {key}")),
    }
    Ok(())
}

fn bfc_option(config: &mut BfcConfig, key: &str, value: &str) -> Result<(), String> {
    match key {
        "limit" => config.limit = MemoryLimit::Exactly(bytes(value)?),
        "memory_fraction" => config.limit = MemoryLimit::Fraction(number(value)?),
        "allow_growth" => config.allow_growth = yes(value)?,
        "garbage_collection" => config.garbage_collection = yes(value)?,
        "coalesce_regions" => config.coalesce_regions = yes(value)?,
        "fragmentation_fraction" => config.fragmentation_fraction = Some(number(value)?),
        _ => return Err(format!("unknown option {key}")),
    }
    Ok(())
}

fn yes(value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}

fn number(value: &str) -> Result<f64, String> {
    value.parse().map_err(|_| format!("{value} is not a number"))
}

/// Sums of sizes: `10MiB-512`, `1MiB+1`, `300KiB`, `2049`.
fn bytes(text: &str) -> Result<Bytes, String> {
    let mut total = 0i128;
    let mut rest = text;
    let mut sign = 1;
    loop {
        let end = rest.find(['+', '-']).unwrap_or(rest.len());
        let term: Bytes = rest[..end].parse().map_err(|e| format!("{e}"))?;
        total += sign * i128::from(term.get());
        let Some(operator) = rest[end..].chars().next() else { break };
        sign = if operator == '+' { 1 } else { -1 };
        rest = &rest[end + 1..];
    }
    u64::try_from(total).map(Bytes).map_err(|_| format!("{text} is below zero"))
}

/// Exact, in the largest unit that divides it.
fn short(size: Bytes) -> String {
    match size.get() {
        0 => "0".to_owned(),
        n if n % MIB == 0 => format!("{}MiB", n / MIB),
        n if n % KIB == 0 => format!("{}KiB", n / KIB),
        n => n.to_string(),
    }
}

fn signed(offset: i64) -> String {
    let sign = if offset < 0 { "-" } else { "" };
    format!("{sign}{}", short(Bytes(offset.unsigned_abs())))
}
