//! A Parquet file of columns.

use crate::table::{Column, Values};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a row group, so that a page has about a megabyte.
const ROWS: usize = 1 << 17;
/// The level of zstd.
const LEVEL: i32 = 3;
/// What writing to memory cannot do.
const WRITES: &str =
    "columns of one length, whose types are those of the schema, can be written to memory";

impl Values {
    const fn physical(&self) -> PhysicalType {
        match self {
            Self::Integers(_) | Self::OptionalIntegers(_) => PhysicalType::INT64,
            Self::OptionalNumbers(_) => PhysicalType::DOUBLE,
            Self::Truths(_) | Self::OptionalTruths(_) => PhysicalType::BOOLEAN,
            Self::Texts(..) => PhysicalType::BYTE_ARRAY,
        }
    }

    const fn repetition(&self) -> Repetition {
        match self {
            Self::Integers(_) | Self::Truths(_) => Repetition::REQUIRED,
            _ => Repetition::OPTIONAL,
        }
    }

    const fn is_text(&self) -> bool {
        matches!(self, Self::Texts(..))
    }
}

/// The file of columns of one length, with facts about it.
pub(super) fn file(columns: &[Column], facts: &[(&str, String)]) -> Vec<u8> {
    let rows = columns.first().map_or(0, |column| column.values.len());
    let mut bytes = Vec::new();
    let mut file =
        SerializedFileWriter::new(&mut bytes, schema(columns), properties(columns, facts))
            .expect(WRITES);
    for start in (0..rows).step_by(ROWS) {
        let rows = start..rows.min(start + ROWS);
        let mut group = file.next_row_group().expect(WRITES);
        for column in columns {
            let mut chunk = group.next_column().expect(WRITES).expect("a column of the schema");
            write(&column.values, rows.clone(), &mut chunk);
            chunk.close().expect(WRITES);
        }
        group.close().expect(WRITES);
    }
    file.close().expect(WRITES);
    bytes
}

fn schema(columns: &[Column]) -> TypePtr {
    let fields = columns.iter().map(|column| {
        let values = &column.values;
        let field = Type::primitive_type_builder(&column.name, values.physical())
            .with_repetition(values.repetition())
            .with_logical_type(values.is_text().then_some(LogicalType::String));
        Arc::new(field.build().expect("a type with its own logical type"))
    });
    let group = Type::group_type_builder("schema").with_fields(fields.collect());
    Arc::new(group.build().expect("a group of types"))
}

/// Texts have a dictionary; addresses and sizes gain nothing by one.
fn properties(columns: &[Column], facts: &[(&str, String)]) -> WriterPropertiesPtr {
    let facts = facts
        .iter()
        .map(|(key, value)| KeyValue { key: (*key).to_owned(), value: Some(value.clone()) });
    let level = ZstdLevel::try_new(LEVEL).expect("a level of zstd");
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(concat!("xmem version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(facts.collect()))
        .set_dictionary_enabled(false);
    for column in columns.iter().filter(|column| column.values.is_text()) {
        let path = ColumnPath::from(column.name.as_ref());
        properties = properties.set_column_dictionary_enabled(path, true);
    }
    Arc::new(properties.build())
}

/// Writes a column's values of some rows.
fn write(values: &Values, rows: Range<usize>, chunk: &mut SerializedColumnWriter<'_>) {
    match values {
        Values::Integers(values) => required::<Int64Type>(&values[rows], chunk),
        Values::OptionalIntegers(values) => {
            optional::<Int64Type>(values[rows].iter().copied(), chunk);
        }
        Values::OptionalNumbers(values) => {
            optional::<DoubleType>(values[rows].iter().copied(), chunk);
        }
        Values::Truths(values) => required::<BoolType>(&values[rows], chunk),
        Values::OptionalTruths(values) => optional::<BoolType>(values[rows].iter().copied(), chunk),
        Values::Texts(values, texts) => {
            let texts: Vec<ByteArray> =
                texts.iter().map(|text| ByteArray::from(text.as_str())).collect();
            let text = |number: &Option<u32>| number.map(|number| texts[number as usize].clone());
            optional::<ByteArrayType>(values[rows].iter().map(text), chunk);
        }
    }
}

fn required<T: DataType>(values: &[T::T], chunk: &mut SerializedColumnWriter<'_>) {
    chunk.typed::<T>().write_batch(values, None, None).expect(WRITES);
}

fn optional<T: DataType>(
    values: impl Iterator<Item = Option<T::T>>,
    chunk: &mut SerializedColumnWriter<'_>,
) {
    let mut present = Vec::new();
    let levels: Vec<i16> = values
        .map(|value| {
            let level = value.is_some().into();
            present.extend(value);
            level
        })
        .collect();
    chunk.typed::<T>().write_batch(&present, Some(&levels), None).expect(WRITES);
}
