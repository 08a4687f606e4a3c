//! `xmem.law/1`.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use xmem::Bytes;
use xmem::types::printable;
use xmem_studies::law::{LawCheck, LawPoint, LawSubject, LawSummary, LawTable, LawWith};

const LAW: &str = "xmem.law/1";

/// The memory of a job as a function of a number in its command, on one device: columns of equal length.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LawDocument {
    schema: String,
    /// The name of the number.
    name: String,
    /// The command as it was recorded.
    command: String,
    /// The device.
    device: String,
    /// The memory of the device.
    device_memory_bytes: u64,
    /// What others than the allocator take of it; part of `needs_bytes`.
    context_bytes: u64,
    /// The values that were recorded, ascending.
    recorded: Vec<u64>,
    /// Values, ascending.
    values: Vec<u64>,
    /// For each value, peak allocated memory.
    allocated_bytes: Vec<u64>,
    /// For each value, peak reserved memory where the device has enough.
    reserved_bytes: Vec<u64>,
    /// For each value, the least device memory with which the job runs.
    needs_bytes: Vec<u64>,
    /// For each value, the least that this may be.
    needs_low_bytes: Vec<u64>,
    /// For each value, the most that this may be.
    needs_high_bytes: Vec<u64>,
    /// Blocks of the recording with the greatest value, by how their sizes follow from the value.
    blocks: BlocksDto,
    /// What the law says about recordings, each left out in turn.
    checks: Vec<CheckDto>,
    /// Recordings with measures.
    #[serde(default)]
    with_measures: Vec<WithDto>,
    /// What to know about the figures.
    notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct BlocksDto {
    /// Of the same size for all values.
    constant: usize,
    /// Whose sizes lie on a polynomial through all recordings.
    polynomial: usize,
    /// Whose sizes lie on straight lines between recorded ones.
    interpolated: usize,
    /// Which not all recordings have.
    unmatched: usize,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct WithDto {
    /// The measures, as the command line takes them.
    measures: String,
    /// The GPUs that they divide the job over, each with the values; 1 if they do not.
    gpus: u32,
    /// The values that were recorded, ascending.
    values: Vec<u64>,
    /// For each value, the least device memory with which the job runs.
    needs_bytes: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct CheckDto {
    /// The value.
    value: u64,
    /// As recorded.
    recorded: FiguresDto,
    /// As the law of the other recordings says.
    predicted: FiguresDto,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct FiguresDto {
    /// Peak allocated memory.
    allocated_bytes: u64,
    /// Peak reserved memory.
    reserved_bytes: u64,
    /// The least device memory.
    needs_bytes: u64,
}

/// Text that is not a law.
#[derive(Debug, Error)]
pub enum ReadLawError {
    /// It is no JSON, or lacks something.
    #[error("the document is not complete")]
    Content(#[from] serde_json::Error),
    /// It is another document.
    #[error("its schema is `{0}`, expected `{LAW}`")]
    OtherSchema(String),
    /// Its values are not ascending, or its columns are not of one length.
    #[error("its columns do not go together")]
    Columns,
}

impl LawDocument {
    /// The document of a law.
    #[must_use]
    pub fn new(law: &LawTable) -> Self {
        let column = |of: fn(&LawPoint) -> u64| law.points.iter().map(of).collect();
        let LawSubject { name, command, device, memory, context, notes } = law.subject.clone();
        let LawSummary { constant, polynomial, interpolated, unmatched, .. } = law.summary;
        Self {
            schema: LAW.to_owned(),
            name,
            command,
            device,
            device_memory_bytes: memory.get(),
            context_bytes: context.get(),
            recorded: law.recorded.clone(),
            values: column(|point| point.value),
            allocated_bytes: column(|point| point.allocated.get()),
            reserved_bytes: column(|point| point.reserved.get()),
            needs_bytes: column(|point| point.needs.get()),
            needs_low_bytes: column(|point| point.range.0.get()),
            needs_high_bytes: column(|point| point.range.1.get()),
            blocks: BlocksDto { constant, polynomial, interpolated, unmatched },
            checks: law.checks.iter().map(CheckDto::from).collect(),
            with_measures: law.with.iter().map(WithDto::from).collect(),
            notes,
        }
    }

    fn table(self) -> Option<LawTable> {
        let rows = self.values.len();
        let columns = [
            &self.allocated_bytes,
            &self.reserved_bytes,
            &self.needs_bytes,
            &self.needs_low_bytes,
            &self.needs_high_bytes,
        ];
        let ascends = |values: &[u64]| values.is_sorted_by(|one, other| one < other);
        if rows == 0 || columns.iter().any(|column| column.len() != rows) {
            return None;
        }
        if !ascends(&self.values) || !ascends(&self.recorded) {
            return None;
        }
        let points = (0..rows).map(|row| LawPoint {
            value: self.values[row],
            allocated: Bytes(self.allocated_bytes[row]),
            reserved: Bytes(self.reserved_bytes[row]),
            needs: Bytes(self.needs_bytes[row]),
            range: (Bytes(self.needs_low_bytes[row]), Bytes(self.needs_high_bytes[row])),
        });
        let BlocksDto { constant, polynomial, interpolated, unmatched } = self.blocks;
        let blocks = [constant, polynomial, interpolated, unmatched];
        let blocks = blocks.into_iter().try_fold(0_usize, usize::checked_add)?;
        let subject = LawSubject {
            name: self.name,
            command: self.command,
            device: self.device,
            memory: Bytes(self.device_memory_bytes),
            context: Bytes(self.context_bytes),
            notes: self.notes,
        };
        let points = points.collect();
        let summary = LawSummary { blocks, constant, polynomial, interpolated, unmatched };
        let checks = self.checks.iter().map(LawCheck::from).collect();
        let with = self.with_measures.into_iter().map(WithDto::read).collect::<Option<_>>()?;
        let table = LawTable::from_rows(subject, self.recorded, points, summary, checks);
        Some(table.and_with(with))
    }
}

impl From<&LawWith> for WithDto {
    fn from(with: &LawWith) -> Self {
        Self {
            measures: with.measures.clone(),
            gpus: with.gpus,
            values: with.needs.keys().copied().collect(),
            needs_bytes: with.needs.values().map(|needs| needs.get()).collect(),
        }
    }
}

impl WithDto {
    fn read(self) -> Option<LawWith> {
        let Self { measures, gpus, values, needs_bytes } = self;
        let is_table = values.len() == needs_bytes.len() && values.is_sorted_by(|a, b| a < b);
        let needs = values.into_iter().zip(needs_bytes.into_iter().map(Bytes)).collect();
        is_table.then_some(LawWith { measures, gpus, needs })
    }
}

impl From<&LawCheck> for CheckDto {
    fn from(check: &LawCheck) -> Self {
        let figures = |point: &LawPoint| FiguresDto {
            allocated_bytes: point.allocated.get(),
            reserved_bytes: point.reserved.get(),
            needs_bytes: point.needs.get(),
        };
        Self {
            value: check.recorded.value,
            recorded: figures(&check.recorded),
            predicted: figures(&check.predicted),
        }
    }
}

impl From<&CheckDto> for LawCheck {
    fn from(check: &CheckDto) -> Self {
        let point = |figures: &FiguresDto| LawPoint {
            value: check.value,
            allocated: Bytes(figures.allocated_bytes),
            reserved: Bytes(figures.reserved_bytes),
            needs: Bytes(figures.needs_bytes),
            range: (Bytes(figures.needs_bytes), Bytes(figures.needs_bytes)),
        };
        Self { recorded: point(&check.recorded), predicted: point(&check.predicted) }
    }
}

/// Returns whether a text may be a law: it begins as `xmem fit --law` writes one.
#[must_use]
pub fn is_law(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(64)]);
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    compact.starts_with("{\"schema\":\"xmem.law/")
}

/// Reads a law.
///
/// # Errors
/// If the text is not one of this version.
pub fn read_law(text: &str) -> Result<LawTable, ReadLawError> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
    }
    let Schema { schema } = serde_json::from_str(text)?;
    if schema != LAW {
        return Err(ReadLawError::OtherSchema(printable(&schema).into_owned()));
    }
    let document: LawDocument = serde_json::from_str(text)?;
    document.table().ok_or(ReadLawError::Columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law() -> LawTable {
        let point = |value| LawPoint {
            value,
            allocated: Bytes(value * 100),
            reserved: Bytes(value * 200),
            needs: Bytes(value * 200 + 7),
            range: (Bytes(value * 200 + 7), Bytes(value * 200 + 7)),
        };
        let subject = LawSubject {
            name: "batch".to_owned(),
            command: "python train.py --batch 8".to_owned(),
            device: "t4-16g".to_owned(),
            memory: Bytes::gib(15),
            context: Bytes(7),
            notes: vec!["a note".to_owned()],
        };
        let summary =
            LawSummary { blocks: 10, constant: 1, polynomial: 2, interpolated: 3, unmatched: 4 };
        let check = LawCheck { recorded: point(8), predicted: LawPoint { value: 8, ..point(9) } };
        let points = (4..9).map(point).collect();
        let table = LawTable::from_rows(subject, vec![4, 8], points, summary, vec![check]);
        let needs = [(8, Bytes(1000)), (16, Bytes(2000))].into();
        let with = LawWith { measures: "checkpointing=2,fused".to_owned(), gpus: 1, needs };
        table.and_with(vec![with])
    }

    #[test]
    fn a_law_is_read_as_it_was_written() {
        let text = crate::encode::pretty(&LawDocument::new(&law()));
        assert!(is_law(text.as_bytes()));
        assert_eq!(read_law(&text).expect("a law"), law());
        let line = crate::encode::line(&LawDocument::new(&law()));
        assert!(is_law(line.as_bytes()) && read_law(&line).is_ok());
    }

    #[test]
    fn columns_that_do_not_go_together_are_an_error() {
        let text = crate::encode::line(&LawDocument::new(&law()));
        for (from, to) in [
            ("\"values\":[4,5,6,7,8]", "\"values\":[4,5,6,7]"),
            ("\"values\":[8,16]", "\"values\":[8]"),
            ("\"values\":[8,16]", "\"values\":[16,8]"),
            ("\"values\":[4,5,6,7,8]", "\"values\":[4,5,5,7,8]"),
            ("\"recorded\":[4,8]", "\"recorded\":[8,4]"),
            ("xmem.law/1", "xmem.law/2"),
            ("\"constant\":1", "\"constant\":18446744073709551615"),
            ("\"notes\"", "\"nodes\""),
        ] {
            assert!(text.contains(from), "{from}");
            read_law(&text.replace(from, to)).expect_err(to);
        }
        assert!(!is_law(b"{\"schema\":\"xmem.fit/1\"") && !is_law(b"{") && !is_law(b"\xff"));
    }
}
