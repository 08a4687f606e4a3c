//! Offloading policies, each with the memory of its step over time: the head of the data and its columns.
//! `web/src/data/offload.ts` reads them.

use super::columns::{ColumnHead, Columns, Encoding};
use serde::Serialize;
use xmem::analyzer::Role;
use xmem::types::Nanos;
use xmem_studies::offload::{Direction, LayerId};
use xmem_studies::offloading::{OffloadAnswer, OffloadPiece, OffloadRow};

#[derive(Serialize)]
pub(super) struct OffloadHead<'a> {
    device: &'a str,
    iteration: u32,
    link_bytes_per_second: u64,
    /// The parameters of the model of durations.
    model: Vec<String>,
    /// Layers by name, and an empty name for what belongs to none.
    layers: Vec<&'a str>,
    rows: Vec<RowHead>,
}

/// A policy with a placement.
#[derive(Serialize)]
struct RowHead {
    policy: &'static str,
    placement: &'static str,
    step_ns: i64,
    compute_ns: i64,
    copying_ns: i64,
    exposed_ns: i64,
    recomputed_ns: i64,
    to_host_bytes: u64,
    to_device_bytes: u64,
    pinned_bytes: u64,
    live_bytes: u64,
    peak_bytes: u64,
    columns: Vec<ColumnHead>,
}

/// The head of the policies, and the columns of each.
pub(super) fn encode(answer: &OffloadAnswer) -> (OffloadHead<'_>, Vec<Vec<u8>>) {
    let layers = answer.step.graph.layers();
    let names = layers.iter().map(|layer| layer.name.as_str());
    let (rows, columns) = answer.rows.iter().map(|row| self::row(answer, row)).unzip();
    let head = OffloadHead {
        device: &answer.device.name,
        iteration: answer.step.iteration.0,
        link_bytes_per_second: answer.link.bandwidth.get(),
        model: answer.model.to_string().lines().map(str::to_owned).collect(),
        layers: names.chain([""]).collect(),
        rows,
    };
    (head, columns)
}

fn row(answer: &OffloadAnswer, row: &OffloadRow) -> (RowHead, Vec<u8>) {
    let mut columns = Columns::default();
    let graph = &answer.step.graph;
    let pieces = &row.pieces;
    let time = |at: Nanos| u64::try_from(at.get()).unwrap_or(0);
    let mut add = |name, encoding, value: &dyn Fn(&OffloadPiece) -> u64| {
        columns.add(name, encoding, pieces.iter().map(value));
    };
    let role = |of: &OffloadPiece| {
        let role = answer.step.roles.get(of.block.index());
        let row = role.and_then(|role| Role::ALL.iter().position(|known| known == role));
        row.unwrap_or(Role::ALL.len() - 1) as u64
    };
    let layer = |of: &OffloadPiece| {
        let layer = graph.steps().get(of.step.index()).and_then(|step| step.work.layer());
        layer.map_or(graph.layers().len(), LayerId::index) as u64
    };
    add("start", Encoding::Delta, &|of| time(of.start));
    add("lifetime", Encoding::Plain, &|of| time(of.end - of.start));
    add("size", Encoding::Plain, &|of| of.size.get());
    add("role", Encoding::Plain, &role);
    add("layer", Encoding::Plain, &layer);
    add("address", Encoding::Plain, &|of| of.address.map_or(0, |at| at.get() + 1));
    let copies = |direction| {
        let own = row.transfers.iter().filter(move |copy| copy.direction == direction);
        own.map(|copy| (copy.start, copy.end)).collect::<Vec<_>>()
    };
    let mut spans = |names: [&'static str; 2], spans: &[(Nanos, Nanos)]| {
        columns.add(names[0], Encoding::Delta, spans.iter().map(|span| time(span.0)));
        columns.add(names[1], Encoding::Plain, spans.iter().map(|span| time(span.1 - span.0)));
    };
    spans(["computing_start", "computing_time"], &row.computing);
    spans(["to_host_start", "to_host_time"], &copies(Direction::ToHost));
    spans(["to_device_start", "to_device_time"], &copies(Direction::ToDevice));
    let head = RowHead {
        policy: row.policy.name(),
        placement: row.placement.name(),
        step_ns: row.step_time.get(),
        compute_ns: row.compute.get(),
        copying_ns: row.copying.get(),
        exposed_ns: row.exposed().get(),
        recomputed_ns: row.recomputed.get(),
        to_host_bytes: row.to_host.get(),
        to_device_bytes: row.to_device.get(),
        pinned_bytes: row.pinned.get(),
        live_bytes: row.live.get(),
        peak_bytes: row.peak.get(),
        columns: columns.heads,
    };
    (head, columns.bytes)
}
