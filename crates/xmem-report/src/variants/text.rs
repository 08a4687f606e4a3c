//! The answers for variants of a distributed job, compared.

use crate::ranks::text::numbers;
use crate::replay::table::short_names;
use crate::style::{Ink, Style, wrap};
use crate::table::{Align, Table};
use crate::validate::text::signed;
use std::iter::repeat_n;
use xmem::Device;
use xmem::analyzer::recording::Strategy;
use xmem_studies::ranks::RankAnswer;
use xmem_studies::variants::{JobVariant, JobVariants};

const COLUMNS: [(&str, Align); 9] = [
    ("trace", Align::Rest),
    ("ranks", Align::Right),
    ("torch", Align::Left),
    ("needs most", Align::Left),
    ("allocated", Align::Right),
    ("reserved", Align::Right),
    ("difference", Align::Right),
    ("nvidia-smi", Align::Right),
    ("strategy", Align::Left),
];

/// The width of the columns of sizes, with the space between them, and of the column `needs most`.
const SIZES: usize = 56;
const NEEDS_MOST: usize = 12;

/// The least width of the column of strategies.
const MIN_STRATEGY: usize = 32;

/// Ends of the names of recordings.
const EXTENSIONS: [&str; 3] = [".json.zst", ".json.gz", ".json"];

/// A table of variants on one device, each with what it needs beyond the first one.
#[must_use]
pub fn variants(device: &Device, all: &JobVariants, style: &Style) -> String {
    let first = &all.variants[0];
    let world_size = |variant: &JobVariant| variant.job.world_size.to_string();
    let torch = |variant: &JobVariant| variant.torch().unwrap_or_default().to_owned();
    let worst = |variant: &JobVariant| numbers(&[variant.job.worst().number()]);
    let ranks: Vec<u32> = first.job.ranks.iter().map(RankAnswer::number).collect();
    let sizes_differ = all.variants.iter().any(|other| world_size(other) != world_size(first));
    let releases_differ = all.variants.iter().any(|other| torch(other) != torch(first));
    let traces: Vec<&str> =
        all.variants.iter().map(|variant| variant.job.worst().trace.as_str()).collect();
    let traces = without_extension(short_names(&traces));
    let longest = traces.iter().map(|trace| trace.chars().count()).max().unwrap_or(0);
    let others = longest + SIZES + if ranks.len() > 1 { NEEDS_MOST } else { 0 };
    let width = style.columns().saturating_sub(others).max(MIN_STRATEGY);
    let mut table = Table::new(&COLUMNS);
    for (variant, trace) in all.variants.iter().zip(traces) {
        let figures = variant.figures();
        let difference = all.difference(variant).reserved;
        let is_first = std::ptr::eq(variant, first);
        let mut lines = wrap(&strategies(variant.strategies()), width).into_iter();
        table.row([
            trace,
            if sizes_differ { world_size(variant) } else { String::new() },
            if releases_differ { torch(variant) } else { String::new() },
            if ranks.len() > 1 { worst(variant) } else { String::new() },
            figures.allocated.to_string(),
            figures.reserved.to_string(),
            if is_first { String::new() } else { signed(difference) },
            figures.device.to_string(),
            lines.next().unwrap_or_default(),
        ]);
        for line in lines {
            table.row(repeat_n(String::new(), COLUMNS.len() - 1).chain([line]));
        }
    }
    let of = if sizes_differ { String::new() } else { format!(" of {}", world_size(first)) };
    let count = all.variants.len();
    let heading =
        format!("{count} variants of a job on {} each, {}{of}", device.name, numbers(&ranks));
    let meaning = "difference: reserved memory, from that of the first variant";
    format!("{}\n\n{}\n  {meaning}\n", style.paint(Ink::Heading, &heading), table.render(style))
}

/// The names without the extension that all of them have.
fn without_extension(names: Vec<String>) -> Vec<String> {
    let shared = EXTENSIONS.iter().find(|end| names.iter().all(|name| name.ends_with(**end)));
    let cut = shared.map_or(0, |end| end.len());
    names.into_iter().map(|name| name[..name.len() - cut].to_owned()).collect()
}

fn strategies(strategies: &[Strategy]) -> String {
    match strategies {
        [] => "not noted".to_owned(),
        all => all.iter().map(Strategy::to_string).collect::<Vec<_>>().join(" + "),
    }
}
