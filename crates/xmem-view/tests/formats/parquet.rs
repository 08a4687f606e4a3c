//! The tables as Parquet, and as JSON lines.

use crate::run::Recorded;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use std::collections::BTreeMap;
use std::time::Duration;
use xmem::Bytes;
use xmem_eval::evaluation::{
    Configuration, EstimatedRun, EvaluatedRun, Evaluation, EvaluationRow, SecondRound, TrueRun,
    TruthSource,
};
use xmem_view::RunTable;

/// A table: its columns by name, and the facts of the file.
#[derive(Debug, Default)]
struct Table {
    rows: i64,
    columns: BTreeMap<String, Vec<Field>>,
    facts: BTreeMap<String, String>,
}

impl Table {
    fn read(file: Vec<u8>) -> Self {
        let file = SerializedFileReader::new(bytes::Bytes::from(file)).expect("a Parquet file");
        let about = file.metadata().file_metadata();
        let mut table = Self { rows: about.num_rows(), ..Self::default() };
        for fact in about.key_value_metadata().into_iter().flatten() {
            table.facts.insert(fact.key.clone(), fact.value.clone().unwrap_or_default());
        }
        for column in about.schema_descr().columns() {
            table.columns.insert(column.name().to_owned(), Vec::new());
        }
        for row in file.get_row_iter(None).expect("rows") {
            for (name, field) in row.expect("a row").into_columns() {
                table.columns.get_mut(&name).expect("a column").push(field);
            }
        }
        table
    }

    fn numbers(&self, name: &str) -> Vec<Option<i64>> {
        let fields = self.columns[name].iter();
        fields
            .map(|field| match field {
                Field::Long(number) => Some(*number),
                Field::Null => None,
                other => panic!("{other:?} is no number"),
            })
            .collect()
    }
}

#[test]
fn blocks_at_the_peak_add_up_to_it() {
    for path in ["gpt2_adamw/trace.json.zst", "mlp_adam/trace.json.zst"] {
        let recorded = Recorded::trace(path);
        let run = recorded.run();
        let table = Table::read(xmem_view::parquet(&run, RunTable::Blocks));
        assert_eq!(table.rows as usize, run.timeline.blocks.len(), "{path}");
        assert_eq!(table.facts["xmem.schema"], "xmem.blocks/1");
        let peak = run.answer.memory.peak.allocated.get();
        assert_eq!(table.facts["xmem.peak_allocated_bytes"], peak.to_string());
        let at_peak = &table.columns["at_peak"];
        let sizes = table.numbers("size_bytes");
        let there = sizes.iter().zip(at_peak).filter(|(_, field)| **field == Field::Bool(true));
        assert_eq!(there.filter_map(|(size, _)| *size).sum::<i64>() as u64, peak, "{path}");
        let freed = table.numbers("freed");
        for (row, block) in run.timeline.blocks.iter().enumerate() {
            let text = |column: &str| match &table.columns[column][row] {
                Field::Str(text) => text.as_str(),
                Field::Null => "",
                other => panic!("{other:?} is no text"),
            };
            assert_eq!(text("role"), block.role.name());
            assert_eq!(text("module"), run.timeline.text(block.module));
            assert_eq!(text("op"), run.timeline.text(block.op));
            assert_eq!(freed[row], block.freed.map(i64::from));
        }
    }
}

#[test]
fn moments_have_the_peaks_and_segments_add_up() {
    let recorded = Recorded::trace("mlp_adam/trace.json.zst");
    let run = recorded.run();
    let moments = Table::read(xmem_view::parquet(&run, RunTable::Moments));
    let highest =
        |name: &str| moments.numbers(name).into_iter().flatten().max().unwrap_or(0) as u64;
    let peak = &run.answer.memory.peak;
    assert_eq!(highest("allocated_bytes"), peak.allocated.get());
    assert_eq!(highest("requested_bytes"), peak.requested.get());
    assert_eq!(highest("reserved_bytes"), peak.reserved.get());
    assert!(moments.numbers("time_ns").is_sorted());
    let segments = Table::read(xmem_view::parquet(&run, RunTable::Segments));
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
        let read = Table::read(xmem_view::parquet(&recorded.run(), table));
        assert_eq!((read.rows, read.facts["xmem.schema"].as_str()), (0, table.schema()));
    }
}

#[test]
fn lines_of_json_have_the_cells_of_parquet() {
    let recorded = Recorded::trace("mlp_adam/trace.json.zst");
    let run = recorded.run();
    for kind in [RunTable::Blocks, RunTable::Moments, RunTable::Segments] {
        let table = Table::read(xmem_view::parquet(&run, kind));
        let text = xmem_view::jsonl(&run, kind);
        assert_eq!(text.lines().count() as i64, table.rows);
        for (row, line) in text.lines().enumerate() {
            let object: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(line).expect("an object");
            assert_eq!(object.len(), table.columns.len());
            for (name, value) in object {
                let expected = match &table.columns[&name][row] {
                    Field::Null => serde_json::Value::Null,
                    Field::Long(number) => (*number).into(),
                    Field::Bool(truth) => (*truth).into(),
                    Field::Str(text) => text.as_str().into(),
                    other => panic!("{other:?}"),
                };
                assert_eq!(value, expected, "{kind:?}: {name} of row {row}");
            }
        }
    }
}

/// A run with two estimates.
fn evaluation() -> Evaluation {
    let estimate = |memory: u64| EstimatedRun {
        memory: Bytes::mib(memory),
        reserve: Bytes::mib(memory),
        range: None,
        out_of_memory: false,
        second: Some(SecondRound { out_of_memory: true, error: None }),
        runtime: Some(Duration::from_millis(1500)),
        classes: None,
    };
    let run = EvaluatedRun {
        configuration: Configuration::new(
            [("batch", "8"), ("device", "t4-16g")]
                .map(|(factor, value)| (factor.to_owned(), value.to_owned())),
        ),
        truth: TrueRun {
            peak: Bytes::mib(100),
            out_of_memory: false,
            capacity: Bytes::mib(200),
            classes: None,
        },
        estimates: vec![Some(estimate(110)), None, Some(estimate(100))],
    };
    Evaluation {
        title: "A network".to_owned(),
        truth: TruthSource::Readings,
        estimators: ["a", "b", "c"].map(str::to_owned).to_vec(),
        runs: vec![run],
        failures: Vec::new(),
        of: 1,
    }
}

#[test]
fn an_evaluation_is_a_row_for_each_estimate() {
    let evaluation = evaluation();
    let file = xmem_view::evaluation_parquet(&evaluation);
    let again = xmem_view::evaluation_of_parquet(file.clone()).expect("an evaluation");
    assert_eq!(again.truth, "readings");
    assert_eq!(Ok(again.rows), EvaluationRow::of_columns(&evaluation.columns()));
    let table = Table::read(file);
    assert_eq!(table.rows, 2);
    assert_eq!(table.facts["xmem.truth"], "readings");
    assert_eq!(table.numbers("batch"), [Some(8), Some(8)]);
    assert_eq!(table.numbers("memory_bytes"), [Some(110 << 20), Some(100 << 20)]);
    assert_eq!(table.numbers("low_bytes"), [None, None]);
    let column = |name: &str| table.columns[name].clone();
    assert_eq!(column("estimator"), ["a", "c"].map(|name| Field::Str(name.to_owned())));
    assert_eq!(column("error"), [Field::Double(0.1), Field::Double(0.0)]);
    assert_eq!(column("usable"), [Field::Bool(false), Field::Bool(false)]);
    assert_eq!(column("second_error"), [Field::Null, Field::Null]);
    assert_eq!(column("runtime_s"), [Field::Double(1.5), Field::Double(1.5)]);
}

/// Every byte of a file changed, and every place where it can end: an error or an answer, never a panic.
#[test]
fn a_damaged_evaluation_is_an_error() {
    let file = xmem_view::evaluation_parquet(&evaluation());
    let whole = xmem_view::evaluation_of_parquet(file.clone());
    assert_eq!(whole.expect("a table").rows.len(), 2);
    for end in 0..file.len() {
        let cut = xmem_view::evaluation_of_parquet(file[..end].to_vec());
        assert!(cut.is_err(), "cut at {end}");
    }
    for place in 0..file.len() {
        let mut damaged = file.clone();
        damaged[place] ^= 0x55;
        let _ = xmem_view::evaluation_of_parquet(damaged);
    }
    let blocks =
        xmem_view::parquet(&Recorded::trace("mlp_adam/trace.json.zst").run(), RunTable::Blocks);
    let other = xmem_view::evaluation_of_parquet(blocks).expect_err("another table");
    assert_eq!(other, "it is of version xmem.blocks/1, expected xmem.evaluated/1");
}
