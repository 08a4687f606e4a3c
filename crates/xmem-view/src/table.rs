//! The tables of a run: its blocks, moments or segments as columns. Left to others: the files that they are written to.

use crate::Run;
use crate::clock::Clock;
use std::borrow::Cow;
use std::collections::BTreeMap;
use xmem::Bytes;
use xmem::predict::{PathId, TextId, TimelineBlock};
use xmem::simulator::PoolKind;
use xmem::types::{Addr, IterationId};
use xmem_eval::evaluation::{EvaluationColumn, EvaluationValues};

/// A table of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunTable {
    /// One row for each block.
    Blocks,
    /// One row for each allocation and each free: the figures after it.
    Moments,
    /// One row for each range of device memory that the allocator obtained.
    Segments,
}

impl RunTable {
    /// The name and version of its columns, as files name it (`xmem.schema`).
    #[must_use]
    pub const fn schema(self) -> &'static str {
        match self {
            Self::Blocks => "xmem.blocks/1",
            Self::Moments => "xmem.moments/1",
            Self::Segments => "xmem.segments/1",
        }
    }
}

/// A column: its name and its values, one for each row.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: Cow<'static, str>,
    pub(crate) values: Values,
}

#[derive(Clone, Debug)]
pub(crate) enum Values {
    Integers(Vec<i64>),
    OptionalIntegers(Vec<Option<i64>>),
    OptionalNumbers(Vec<Option<f64>>),
    Truths(Vec<bool>),
    OptionalTruths(Vec<Option<bool>>),
    /// Numbers of texts.
    Texts(Vec<Option<u32>>, Vec<String>),
}

impl Values {
    /// Texts, each of them kept once.
    fn texts<'t>(values: impl Iterator<Item = Option<&'t str>>) -> Self {
        let mut known: BTreeMap<&str, u32> = BTreeMap::new();
        let mut texts = Vec::new();
        let mut number = |text: &'t str| {
            *known.entry(text).or_insert_with(|| {
                texts.push(text.to_owned());
                texts.len() as u32 - 1
            })
        };
        let values = values.map(|text| text.map(&mut number)).collect();
        Self::Texts(values, texts)
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::OptionalIntegers(values) => values.len(),
            Self::OptionalNumbers(values) => values.len(),
            Self::Truths(values) => values.len(),
            Self::OptionalTruths(values) => values.len(),
            Self::Texts(values, _) => values.len(),
        }
    }
}

impl From<EvaluationColumn> for Column {
    fn from(column: EvaluationColumn) -> Self {
        let values = match column.values {
            EvaluationValues::Integers(values) => Values::OptionalIntegers(values),
            EvaluationValues::Numbers(values) => Values::OptionalNumbers(values),
            EvaluationValues::Truths(values) => Values::OptionalTruths(values),
            EvaluationValues::Texts(values) => Values::texts(values.iter().map(Option::as_deref)),
        };
        Self { name: column.name.into(), values }
    }
}

/// The columns of a table, of one length. Sizes are bytes, times nanoseconds since the recording began; moments are row
/// numbers of the table of moments.
pub(crate) fn columns(run: &Run<'_>, table: RunTable) -> Vec<Column> {
    let clock = Clock::new(run);
    match table {
        RunTable::Blocks => blocks(run, &clock),
        RunTable::Moments => moments(run, &clock),
        RunTable::Segments => segments(run, &clock),
    }
}

fn blocks(run: &Run<'_>, clock: &Clock) -> Vec<Column> {
    let timeline = run.timeline;
    let rows = Rows { items: &timeline.blocks };
    let known = |id: TextId| Some(timeline.text(id)).filter(|text| !text.is_empty());
    let peak = timeline.peak;
    vec![
        rows.integers("block", |block| block.id.index() as i64),
        rows.integers("requested_bytes", |block| size(block.requested)),
        rows.integers("size_bytes", |block| size(block.size)),
        rows.optional("recorded_bytes", |block| block.recorded.map(size)),
        rows.integers("address", |block| address(block.addr)),
        rows.optional("segment", |block| block.segment.map(i64::from)),
        rows.integers("stream", |block| i64::from(block.stream.0)),
        rows.integers("start", |block| block.start.into()),
        rows.optional("freed", |block| block.freed.map(i64::from)),
        rows.optional("end", |block| block.end.map(i64::from)),
        rows.integers("start_ns", |block| clock.at(block.start).get()),
        rows.optional("freed_ns", |block| block.freed.map(|at| clock.at(at).get())),
        rows.truths("at_peak", |block| block.is_allocated_at(peak)),
        rows.texts("role", |block| Some(block.role.name())),
        rows.texts("evidence", |block| Some(block.evidence).filter(|text| !text.is_empty())),
        rows.texts("rule", |block| block.rule),
        rows.texts("phase", |block| Some(block.phase.name())),
        rows.optional("iteration", |block| block.iteration.map(number)),
        rows.texts("op", |block| known(block.op)),
        rows.texts("module", |block| known(block.module)),
        rows.texts("line", |block| known(block.line)),
        op_paths(run, &timeline.blocks),
    ]
}

/// The operators and annotations around each allocation, from the outermost in, joined by `;`.
fn op_paths(run: &Run<'_>, blocks: &[TimelineBlock]) -> Column {
    let timeline = run.timeline;
    let mut known: BTreeMap<PathId, u32> = BTreeMap::new();
    let mut texts = Vec::new();
    let values = blocks.iter().map(|block| {
        let path = timeline.path(block.path);
        (!path.is_empty()).then(|| {
            *known.entry(block.path).or_insert_with(|| {
                let names: Vec<&str> = path.iter().map(|&id| timeline.text(id)).collect();
                texts.push(names.join(";"));
                texts.len() as u32 - 1
            })
        })
    });
    let values = values.collect();
    Column { name: "op_path".into(), values: Values::Texts(values, texts) }
}

fn moments(run: &Run<'_>, clock: &Clock) -> Vec<Column> {
    let timeline = run.timeline;
    let count = timeline.moments.len() as u32;
    let spans = timeline.phases.iter();
    let place: Vec<_> =
        spans.flat_map(|span| span.moments.clone().map(|_| (span.phase, span.iteration))).collect();
    let all: Vec<(u32, &xmem::predict::TimelineMoment)> =
        (0..count).zip(&timeline.moments).collect();
    let rows = Rows { items: &all };
    let place = |at: u32| place.get(at as usize);
    vec![
        rows.integers("moment", |(at, _)| i64::from(*at)),
        rows.integers("time_ns", |(at, _)| clock.at(*at).get()),
        rows.integers("allocated_bytes", |(_, moment)| size(moment.allocated)),
        rows.integers("active_bytes", |(_, moment)| size(moment.active)),
        rows.integers("requested_bytes", |(_, moment)| size(moment.requested)),
        rows.integers("reserved_bytes", |(_, moment)| size(moment.reserved)),
        rows.texts("phase", |(at, _)| place(*at).map(|(phase, _)| phase.name())),
        rows.optional("iteration", |(at, _)| place(*at)?.1.map(number)),
        rows.truths("within", |(at, _)| timeline.within.contains(at)),
    ]
}

fn segments(run: &Run<'_>, clock: &Clock) -> Vec<Column> {
    let all: Vec<(i64, &xmem::predict::TimelineSegment)> =
        (0..).zip(&run.timeline.segments).collect();
    let rows = Rows { items: &all };
    vec![
        rows.integers("segment", |(row, _)| *row),
        rows.integers("size_bytes", |(_, segment)| size(segment.size)),
        rows.integers("address", |(_, segment)| address(segment.addr)),
        rows.integers("stream", |(_, segment)| i64::from(segment.stream.0)),
        rows.texts("pool", |(_, segment)| {
            Some(match segment.pool {
                PoolKind::Small => "small",
                PoolKind::Large => "large",
            })
        }),
        rows.optional("private_pool", |(_, segment)| {
            segment.private_pool.map(|pool| pool.index() as i64)
        }),
        rows.truths("expandable", |(_, segment)| segment.expandable),
        rows.integers("start", |(_, segment)| segment.start.into()),
        rows.optional("end", |(_, segment)| segment.end.map(i64::from)),
        rows.integers("start_ns", |(_, segment)| clock.at(segment.start).get()),
        rows.optional("end_ns", |(_, segment)| segment.end.map(|at| clock.at(at).get())),
    ]
}

/// The rows of a table, of which each column takes something.
#[derive(Clone, Copy)]
struct Rows<'a, T> {
    items: &'a [T],
}

impl<'a, T> Rows<'a, T> {
    fn integers(self, name: &'static str, value: impl Fn(&T) -> i64) -> Column {
        Column {
            name: name.into(),
            values: Values::Integers(self.items.iter().map(value).collect()),
        }
    }

    fn optional(self, name: &'static str, value: impl Fn(&T) -> Option<i64>) -> Column {
        Column {
            name: name.into(),
            values: Values::OptionalIntegers(self.items.iter().map(value).collect()),
        }
    }

    fn truths(self, name: &'static str, value: impl Fn(&T) -> bool) -> Column {
        Column { name: name.into(), values: Values::Truths(self.items.iter().map(value).collect()) }
    }

    fn texts<'t>(self, name: &'static str, value: impl Fn(&'a T) -> Option<&'t str>) -> Column {
        Column { name: name.into(), values: Values::texts(self.items.iter().map(value)) }
    }
}

/// Sizes above 2^63 are of damaged files.
fn size(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

fn address(addr: Addr) -> i64 {
    i64::try_from(addr.0).unwrap_or(i64::MAX)
}

fn number(iteration: IterationId) -> i64 {
    iteration.index() as i64
}
