//! Columns of a Parquet file.

use parquet::basic::Type as PhysicalType;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use xmem_eval::evaluation::{EvaluationColumn, EvaluationValues};

/// The most rows that are read.
const MAX_ROWS: i64 = 100_000_000;

/// The columns of a file, and the facts about it.
pub(super) struct ReadFile {
    pub(super) columns: Vec<EvaluationColumn>,
    facts: Vec<(String, String)>,
}

impl ReadFile {
    /// The fact with a key.
    pub(super) fn fact(&self, key: &str) -> Option<&str> {
        self.facts.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// Reads a file whose columns are numbers, truths and texts, without nested ones.
pub(super) fn read(bytes: Vec<u8>) -> Result<ReadFile> {
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes))?;
    let metadata = file.metadata().file_metadata();
    if !(0..=MAX_ROWS).contains(&metadata.num_rows()) {
        return Err(ParquetError::General(format!("it has {} rows", metadata.num_rows())));
    }
    if !file.metadata().row_groups().iter().all(is_within_a_file) {
        return Err(ParquetError::General("a column lies at a negative place".to_owned()));
    }
    let schema = metadata.schema_descr();
    let mut columns = Vec::new();
    for (at, column) in schema.columns().iter().enumerate() {
        let name = column.name();
        let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
        let groups = || (0..file.num_row_groups()).map(|group| file.get_row_group(group));
        let values = match column.physical_type() {
            _ if !is_flat => Err(ParquetError::General(format!("`{name}` is a nested column"))),
            PhysicalType::INT64 => all::<Int64Type>(groups(), at).map(EvaluationValues::Integers),
            PhysicalType::DOUBLE => all::<DoubleType>(groups(), at).map(EvaluationValues::Numbers),
            PhysicalType::BOOLEAN => all::<BoolType>(groups(), at).map(EvaluationValues::Truths),
            PhysicalType::BYTE_ARRAY => {
                let texts = all::<ByteArrayType>(groups(), at)?.into_iter();
                let text = |bytes: ByteArray| Ok(bytes.as_utf8()?.to_owned());
                let texts: Result<_> = texts.map(|value| value.map(text).transpose()).collect();
                texts.map(EvaluationValues::Texts)
            }
            other => Err(ParquetError::General(format!("`{name}` is a column of {other}"))),
        }?;
        if values.len() as i64 != metadata.num_rows() {
            return Err(ParquetError::General(format!("`{name}` is cut short")));
        }
        columns.push(EvaluationColumn { name: name.to_owned(), values });
    }
    let facts = metadata.key_value_metadata().into_iter().flatten();
    let facts = facts.filter_map(|fact| Some((fact.key.clone(), fact.value.clone()?)));
    Ok(ReadFile { columns, facts: facts.collect() })
}

/// Returns whether the places of columns and the numbers of rows are not negative, which `parquet` expects.
fn is_within_a_file(group: &RowGroupMetaData) -> bool {
    let is_placed = |column: &ColumnChunkMetaData| {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        start >= 0 && column.compressed_size() >= 0 && column.num_values() >= 0
    };
    group.num_rows() >= 0 && group.columns().iter().all(is_placed)
}

/// The values of a column in all row groups.
fn all<'a, T: DataType>(
    groups: impl Iterator<Item = Result<Box<dyn RowGroupReader + 'a>>>,
    column: usize,
) -> Result<Vec<Option<T::T>>> {
    let mut all = Vec::new();
    for group in groups {
        let group = group?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
        let mut reader: ColumnReaderImpl<T> =
            parquet::column::reader::get_typed_column_reader(group.get_column_reader(column)?);
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        reader.read_records(rows, Some(&mut levels), None, &mut values)?;
        let mut values = values.into_iter();
        // A column that has a value in each row may have no levels.
        match levels.is_empty() {
            true => all.extend(values.map(Some)),
            false => all.extend(levels.iter().map(|&level| match level {
                0 => None,
                _ => values.next(),
            })),
        }
    }
    Ok(all)
}
