//! The tables, read without a library for Parquet, and as JSON lines.

use crate::run::Recorded;
use crate::thrift::{Record, varint};
use std::collections::BTreeMap;
use xmem_view::RunTable;

/// A table: its columns by name, and the facts of the file.
#[derive(Debug, Default)]
struct Table {
    rows: i64,
    columns: BTreeMap<String, Vec<Option<Cell>>>,
    facts: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Number(i64),
    Truth(bool),
    Text(String),
}

impl Table {
    fn read(file: &[u8]) -> Self {
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
        let end = file.len() - 8;
        let length = u32::from_le_bytes(file[end..end + 4].try_into().expect("four bytes"));
        let footer = Record::take(&mut &file[end - length as usize..end]);
        let mut table = Self { rows: footer.number(3), ..Self::default() };
        for fact in footer.records(5) {
            table.facts.insert(fact.text(1).to_owned(), fact.text(2).to_owned());
        }
        let columns: Vec<&Record> = footer.records(2).skip(1).collect();
        for group in footer.records(4) {
            for (column, chunk) in columns.iter().zip(group.records(1)) {
                let cells = cells(column, chunk.record(3), file);
                assert_eq!(cells.len() as i64, group.number(3));
                table.columns.entry(column.text(4).to_owned()).or_default().extend(cells);
            }
        }
        table
    }

    fn numbers(&self, name: &str) -> Vec<Option<i64>> {
        let cells = self.columns[name].iter();
        cells
            .map(|cell| match cell {
                Some(Cell::Number(number)) => Some(*number),
                None => None,
                other => panic!("{other:?} is no number"),
            })
            .collect()
    }
}

/// A page's header and its content.
fn page(file: &[u8], at: i64) -> (Record, Vec<u8>) {
    let mut rest = &file[at as usize..];
    let header = Record::take(&mut rest);
    let size = header.number(2) as usize;
    let content = zstd::bulk::decompress(&rest[..header.number(3) as usize], size);
    let content = content.expect("zstd");
    assert_eq!(content.len(), size);
    (header, content)
}

fn cells(column: &Record, chunk: &Record, file: &[u8]) -> Vec<Option<Cell>> {
    let (header, content) = page(file, chunk.number(9));
    let count = header.record(5).number(1) as usize;
    let mut content = content.as_slice();
    let is_there = if column.number(3) == 1 {
        let (length, rest) = content.split_at(4);
        let length = u32::from_le_bytes(length.try_into().expect("four bytes"));
        let (mut levels, rest) = rest.split_at(length as usize);
        content = rest;
        run(&mut levels, 1, count).into_iter().map(|level| level == 1).collect()
    } else {
        vec![true; count]
    };
    let present = is_there.iter().filter(|there| **there).count();
    assert_eq!(chunk.record(12).number(3) as usize, count - present, "nulls");
    let mut values = match column.number(1) {
        0 => bits(content, 1, present).into_iter().map(|bit| Cell::Truth(bit == 1)).collect(),
        2 => numbers(content).into_iter().map(Cell::Number).collect::<Vec<_>>(),
        6 => {
            assert!(chunk.has(11), "texts have a dictionary");
            let texts = texts(&page(file, chunk.number(11)).1);
            let (width, mut rest) = content.split_first().expect("a width");
            let numbers = run(&mut rest, u32::from(*width), present);
            numbers.into_iter().map(|number| Cell::Text(texts[number as usize].clone())).collect()
        }
        kind => panic!("type {kind}"),
    }
    .into_iter();
    let cells = is_there.into_iter().map(|there| there.then(|| values.next().expect("a value")));
    cells.collect()
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.chunks(8).map(|n| i64::from_le_bytes(n.try_into().expect("eight bytes"))).collect()
}

fn texts(mut bytes: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_at(4);
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        texts.push(String::from_utf8(rest[..length].to_vec()).expect("UTF-8"));
        bytes = &rest[length..];
    }
    texts
}

/// Bit-packed numbers with their header.
fn run(bytes: &mut &[u8], width: u32, count: usize) -> Vec<u32> {
    if count == 0 {
        return Vec::new();
    }
    let header = varint(bytes);
    assert_eq!(header & 1, 1, "bit-packed");
    assert_eq!(bytes.len(), (header >> 1) as usize * width as usize);
    bits(bytes, width, count)
}

fn bits(bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
    let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
    let number = |row: usize| {
        (0..width as usize).map(|place| bit(row * width as usize + place) << place).sum()
    };
    (0..count).map(number).collect()
}

#[test]
fn blocks_at_the_peak_add_up_to_it() {
    for path in ["gpt2_adamw/trace.json.zst", "mlp_adam/trace.json.zst"] {
        let recorded = Recorded::trace(path);
        let run = recorded.run();
        let table = Table::read(&xmem_view::parquet(&run, RunTable::Blocks));
        assert_eq!(table.rows as usize, run.timeline.blocks.len(), "{path}");
        assert_eq!(table.facts["xmem.schema"], "xmem.blocks/1");
        let peak = run.answer.memory.peak.allocated.get();
        assert_eq!(table.facts["xmem.peak_allocated_bytes"], peak.to_string());
        let at_peak = &table.columns["at_peak"];
        let sizes = table.numbers("size_bytes");
        let is_there = |cell: &Option<Cell>| *cell == Some(Cell::Truth(true));
        let there = sizes.iter().zip(at_peak).filter(|(_, cell)| is_there(cell));
        assert_eq!(there.filter_map(|(size, _)| *size).sum::<i64>() as u64, peak, "{path}");
        for (row, block) in run.timeline.blocks.iter().enumerate() {
            let text = |column: &str| match &table.columns[column][row] {
                Some(Cell::Text(text)) => text.as_str(),
                None => "",
                other => panic!("{other:?} is no text"),
            };
            assert_eq!(text("role"), block.role.name());
            assert_eq!(text("module"), run.timeline.text(block.module));
            assert_eq!(text("op"), run.timeline.text(block.op));
            assert_eq!(table.numbers("freed")[row], block.freed.map(i64::from));
        }
    }
}

#[test]
fn moments_have_the_peaks_and_segments_add_up() {
    let recorded = Recorded::trace("mlp_adam/trace.json.zst");
    let run = recorded.run();
    let moments = Table::read(&xmem_view::parquet(&run, RunTable::Moments));
    let highest =
        |name: &str| moments.numbers(name).into_iter().flatten().max().unwrap_or(0) as u64;
    let peak = &run.answer.memory.peak;
    assert_eq!(highest("allocated_bytes"), peak.allocated.get());
    assert_eq!(highest("requested_bytes"), peak.requested.get());
    assert_eq!(highest("reserved_bytes"), peak.reserved.get());
    assert!(moments.numbers("time_ns").is_sorted());
    let segments = Table::read(&xmem_view::parquet(&run, RunTable::Segments));
    assert_eq!(segments.rows as usize, run.timeline.segments.len());
    let ends = segments.numbers("end");
    let held = segments.numbers("size_bytes").into_iter().zip(ends).filter(|row| row.1.is_none());
    let last = run.timeline.moments.last().expect("moments").reserved;
    assert_eq!(held.filter_map(|row| row.0).sum::<i64>() as u64, last.get());
}

#[test]
fn a_run_without_memory_is_an_empty_table() {
    let recorded = Recorded::text(r#"{"traceEvents": []}"#);
    for table in [RunTable::Blocks, RunTable::Moments, RunTable::Segments] {
        let read = Table::read(&xmem_view::parquet(&recorded.run(), table));
        assert_eq!((read.rows, read.facts["xmem.schema"].as_str()), (0, table.schema()));
    }
}

#[test]
fn lines_of_json_have_the_cells_of_parquet() {
    let recorded = Recorded::trace("mlp_adam/trace.json.zst");
    let run = recorded.run();
    for kind in [RunTable::Blocks, RunTable::Moments, RunTable::Segments] {
        let table = Table::read(&xmem_view::parquet(&run, kind));
        let text = xmem_view::jsonl(&run, kind);
        assert_eq!(text.lines().count() as i64, table.rows);
        for (row, line) in text.lines().enumerate() {
            let object: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(line).expect("an object");
            assert_eq!(object.len(), table.columns.len());
            for (name, value) in object {
                let expected = match &table.columns[&name][row] {
                    None => serde_json::Value::Null,
                    Some(Cell::Number(number)) => (*number).into(),
                    Some(Cell::Truth(truth)) => (*truth).into(),
                    Some(Cell::Text(text)) => text.as_str().into(),
                };
                assert_eq!(value, expected, "{kind:?}: {name} of row {row}");
            }
        }
    }
}
