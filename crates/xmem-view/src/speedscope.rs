//! A file for speedscope (`www.speedscope.app`): stacks weighted in bytes.
//!
//! Source of the format: `https://www.speedscope.app/file-format-schema.json`.

use crate::Run;
use serde::Serialize;
use std::collections::BTreeMap;
use xmem::Bytes;
use xmem::predict::{BlockKey, PathId, TextId, TimelineBlock};

/// The name of a part without one.
const UNKNOWN: &str = "[unknown]";
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: &'static str,
    active_profile_index: usize,
    shared: Shared,
    profiles: Vec<Sampled>,
}

#[derive(Debug, Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Debug, Serialize)]
struct Frame {
    name: String,
}

/// A profile: stacks, each with its bytes. Speedscope shows them in this order, or sorts them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// The run as a file for speedscope with these profiles: the memory at the peak of allocated bytes by stack, by module
/// and by line, and every allocation of the run by stack. Blocks are in the order of their allocation.
///
/// # Panics
/// Never: the file is made of texts and numbers.
#[must_use]
pub fn speedscope(run: &Run<'_>) -> Vec<u8> {
    let mut frames = Frames::new(run);
    let timeline = run.timeline;
    let at_peak = || timeline.allocated_at(timeline.peak).map(|row| &timeline.blocks[row]);
    let keys = [BlockKey::Stack, BlockKey::Module, BlockKey::Line];
    let mut profiles: Vec<Sampled> = keys
        .into_iter()
        .map(|key| {
            frames.profile(&format!("memory at the peak, by {}", key.name()), at_peak(), key)
        })
        .collect();
    profiles.push(frames.profile(
        "all allocations, by stack",
        timeline.blocks.iter(),
        BlockKey::Stack,
    ));
    let file = File {
        schema: SCHEMA,
        name: format!("{} on {} (predicted by xmem)", run.name, run.answer.device().title),
        exporter: concat!("xmem ", env!("CARGO_PKG_VERSION")),
        active_profile_index: 0,
        shared: Shared { frames: frames.names },
        profiles,
    };
    serde_json::to_vec(&file).expect("texts and numbers are JSON")
}

/// The frames of all profiles, each kept once.
struct Frames<'a> {
    run: &'a Run<'a>,
    names: Vec<Frame>,
    known: BTreeMap<String, usize>,
}

impl<'a> Frames<'a> {
    fn new(run: &'a Run<'a>) -> Self {
        Self { run, names: Vec::new(), known: BTreeMap::new() }
    }

    /// A profile of blocks. Neighbors with the same stack are one sample.
    fn profile<'b>(
        &mut self,
        name: &str,
        blocks: impl Iterator<Item = &'b TimelineBlock>,
        key: BlockKey,
    ) -> Sampled {
        let mut stacks: BTreeMap<(PathId, TextId), Vec<usize>> = BTreeMap::new();
        let (mut samples, mut weights) = (Vec::new(), Vec::new());
        let (mut last, mut sum) = (None, Bytes::ZERO);
        for block in blocks {
            let parts = match key {
                BlockKey::Stack => (block.path, block.line),
                BlockKey::Module => (PathId::default(), block.module),
                _ => (PathId::default(), block.line),
            };
            sum += block.size;
            if last.replace(parts) == Some(parts) {
                if let Some(weight) = weights.last_mut() {
                    *weight += block.size.get();
                }
                continue;
            }
            let stack = stacks.entry(parts).or_insert_with(|| self.stack(block, key));
            samples.push(stack.clone());
            weights.push(block.size.get());
        }
        Sampled {
            r#type: "sampled",
            name: name.to_owned(),
            unit: "bytes",
            start_value: 0,
            end_value: sum.get(),
            samples,
            weights,
        }
    }

    /// The frames of a block, the outermost first.
    fn stack(&mut self, block: &TimelineBlock, key: BlockKey) -> Vec<usize> {
        let names = self.run.timeline.names(block, key);
        if names.is_empty() {
            return vec![self.frame(UNKNOWN)];
        }
        names.iter().map(|name| self.frame(name)).collect()
    }

    fn frame(&mut self, name: &str) -> usize {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let number = self.names.len();
        self.names.push(Frame { name: name.to_owned() });
        self.known.insert(name.to_owned(), number);
        number
    }
}
