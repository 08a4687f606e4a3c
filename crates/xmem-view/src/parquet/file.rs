//! A Parquet file of integers, truth values and texts.
//!
//! Every column chunk has one data page; those of texts have a dictionary in front. Source of numbers and layouts: Apache
//! Parquet's `parquet.thrift` and `Encodings.md`.

use super::thrift::{Record, unsigned};
use crate::table::{Column, Values};
use std::collections::BTreeMap;
use std::ops::Range;

/// Begins and ends a file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a row group, so that a page has about a megabyte.
const ROWS: usize = 1 << 17;
/// The level of zstd.
const LEVEL: i32 = 3;

/// Physical types.
const BOOLEAN: i32 = 0;
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;
/// Encodings.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
/// Types of pages.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
/// `CompressionCodec.ZSTD`.
const ZSTD: i32 = 6;

impl Values {
    const fn physical(&self) -> i32 {
        match self {
            Self::Integers(_) | Self::OptionalIntegers(_) => INT64,
            Self::Truths(_) => BOOLEAN,
            Self::Texts(..) => BYTE_ARRAY,
        }
    }

    const fn is_optional(&self) -> bool {
        matches!(self, Self::OptionalIntegers(_) | Self::Texts(..))
    }
}

/// The file of columns of one length, with facts about it.
pub(super) fn file(columns: &[Column], facts: &[(&str, String)]) -> Vec<u8> {
    let rows = columns.first().map_or(0, |column| column.values.len());
    let mut bytes = MAGIC.to_vec();
    let mut groups = Vec::new();
    for start in (0..rows).step_by(ROWS) {
        groups.push(group(columns, start..rows.min(start + ROWS), &mut bytes));
    }
    let facts = facts.iter().map(|(key, value)| Record::new().text(1, key).text(2, value));
    let orders = columns.iter().map(|_| Record::new().record(1, Record::new()));
    let footer = Record::new()
        .i32(1, 2)
        .records(2, schema(columns))
        .i64(3, rows as i64)
        .records(4, groups)
        .records(5, facts.collect())
        .text(6, concat!("xmem version ", env!("CARGO_PKG_VERSION")))
        .records(7, orders.collect())
        .into_bytes();
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    bytes.extend_from_slice(MAGIC);
    bytes
}

/// The root with the number of columns, then the columns.
fn schema(columns: &[Column]) -> Vec<Record> {
    let mut elements = vec![Record::new().text(4, "schema").i32(5, columns.len() as i32)];
    elements.extend(columns.iter().map(|column| {
        let element = Record::new()
            .i32(1, column.values.physical())
            .i32(3, column.values.is_optional().into())
            .text(4, column.name);
        match column.values {
            // UTF-8, in the words of old readers and of new ones.
            Values::Texts(..) => {
                element.i32(6, 0).record(10, Record::new().record(1, Record::new()))
            }
            _ => element,
        }
    }));
    elements
}

/// Writes some rows, and returns what the footer says about them.
fn group(columns: &[Column], rows: Range<usize>, bytes: &mut Vec<u8>) -> Record {
    let begin = bytes.len();
    let mut plain = 0;
    let chunks: Vec<Record> = columns
        .iter()
        .map(|column| {
            let (chunk, size) = chunk(column, rows.clone(), bytes);
            plain += size;
            chunk
        })
        .collect();
    Record::new()
        .records(1, chunks)
        .i64(2, plain)
        .i64(3, rows.len() as i64)
        .i64(5, begin as i64)
        .i64(6, (bytes.len() - begin) as i64)
}

/// Writes a column's values of some rows, and returns what the footer says about them, with their size before compression.
fn chunk(column: &Column, rows: Range<usize>, bytes: &mut Vec<u8>) -> (Record, i64) {
    let begin = bytes.len();
    let count = rows.len() as i32;
    let mut plain = 0;
    let (page, dictionary) = content(&column.values, rows);
    let first = dictionary.map(|dictionary| {
        let header = Record::new().i32(1, dictionary.count).i32(2, PLAIN);
        plain += self::page(DICTIONARY_PAGE, 7, header, &dictionary.bytes, bytes);
        begin as i64
    });
    let at = bytes.len() as i64;
    let encoding = if first.is_some() { RLE_DICTIONARY } else { PLAIN };
    let header = Record::new().i32(1, count).i32(2, encoding).i32(3, RLE).i32(4, RLE);
    plain += self::page(DATA_PAGE, 5, header, &page.bytes, bytes);
    let encodings: &[i32] =
        if first.is_some() { &[PLAIN, RLE, RLE_DICTIONARY] } else { &[PLAIN, RLE] };
    let mut facts = Record::new()
        .i32(1, column.values.physical())
        .numbers(2, encodings)
        .texts(3, &[column.name])
        .i32(4, ZSTD)
        .i64(5, count.into())
        .i64(6, plain)
        .i64(7, (bytes.len() - begin) as i64)
        .i64(9, at);
    if let Some(first) = first {
        facts = facts.i64(11, first);
    }
    let facts = facts.record(12, Record::new().i64(3, page.nulls));
    (Record::new().i64(2, 0).record(3, facts), plain)
}

/// The content of a data page before compression.
#[derive(Debug, Default)]
struct Page {
    bytes: Vec<u8>,
    nulls: i64,
}

/// The content of a dictionary page before compression.
#[derive(Debug, Default)]
struct Dictionary {
    bytes: Vec<u8>,
    count: i32,
}

fn content(values: &Values, rows: Range<usize>) -> (Page, Option<Dictionary>) {
    match values {
        Values::Integers(values) => {
            let bytes = values[rows].iter().flat_map(|value| value.to_le_bytes()).collect();
            (Page { bytes, nulls: 0 }, None)
        }
        Values::OptionalIntegers(values) => {
            let mut page = with_levels(values[rows.clone()].iter().map(Option::is_some));
            let values = values[rows].iter().flatten();
            page.bytes.extend(values.flat_map(|value| value.to_le_bytes()));
            (page, None)
        }
        Values::Truths(values) => {
            let bits: Vec<u32> = values[rows].iter().map(|value| u32::from(*value)).collect();
            (Page { bytes: packed(&bits, 1), nulls: 0 }, None)
        }
        Values::Texts(values, texts) => {
            let values = &values[rows];
            let mut page = with_levels(values.iter().map(Option::is_some));
            let mut dictionary = Dictionary::default();
            let mut known: BTreeMap<u32, u32> = BTreeMap::new();
            let numbers = values.iter().flatten().map(|&text| {
                *known.entry(text).or_insert_with(|| {
                    let text = texts[text as usize].as_bytes();
                    dictionary.bytes.extend((text.len() as u32).to_le_bytes());
                    dictionary.bytes.extend_from_slice(text);
                    dictionary.count += 1;
                    dictionary.count as u32 - 1
                })
            });
            let numbers: Vec<u32> = numbers.collect();
            let width = 32 - (dictionary.count as u32).saturating_sub(1).leading_zeros();
            page.bytes.push(width as u8);
            run(&numbers, width, &mut page.bytes);
            (page, Some(dictionary))
        }
    }
}

/// A page that begins with the levels that say where values are: their length, then one bit for each row.
fn with_levels(has_value: impl Iterator<Item = bool>) -> Page {
    let levels: Vec<u32> = has_value.map(u32::from).collect();
    let mut encoded = Vec::new();
    run(&levels, 1, &mut encoded);
    let mut bytes = (encoded.len() as u32).to_le_bytes().to_vec();
    bytes.extend(encoded);
    Page { bytes, nulls: levels.iter().filter(|level| **level == 0).count() as i64 }
}

/// Numbers as one bit-packed run: its groups of eight, then their bits.
fn run(numbers: &[u32], width: u32, bytes: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(8);
    unsigned(bytes, (groups as u64) << 1 | 1);
    let mut bits = packed(numbers, width);
    bits.resize(groups * width as usize, 0);
    bytes.extend(bits);
}

/// Numbers of `width` bits, the lowest bit of each first.
fn packed(numbers: &[u32], width: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() * width as usize / 8 + 1);
    let (mut open, mut filled) = (0_u64, 0);
    for &number in numbers {
        open |= u64::from(number) << filled;
        filled += width;
        while filled >= 8 {
            bytes.push(open as u8);
            open >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        bytes.push(open as u8);
    }
    bytes
}

/// Writes a page, compressed, behind its header, and returns its size with the header before compression.
fn page(kind: i32, field: u8, header: Record, content: &[u8], bytes: &mut Vec<u8>) -> i64 {
    let compressed =
        zstd::bulk::compress(content, LEVEL).expect("memory is the only thing that zstd needs");
    let header = Record::new()
        .i32(1, kind)
        .i32(2, content.len() as i32)
        .i32(3, compressed.len() as i32)
        .record(field, header)
        .into_bytes();
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(&compressed);
    (header.len() + content.len()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of `Encodings.md`: 0 to 7 in three bits each.
    #[test]
    fn bits_are_packed_from_the_lowest_on() {
        assert_eq!(packed(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert_eq!(packed(&[1, 0, 1], 1), [0b101]);
        assert!(packed(&[0, 0], 0).is_empty());
    }

    #[test]
    fn a_run_is_filled_up_to_groups_of_eight() {
        let mut bytes = Vec::new();
        run(&[1; 9], 1, &mut bytes);
        assert_eq!(bytes, [2 << 1 | 1, 0xff, 1]);
        let page = with_levels([true, false, true].into_iter());
        assert_eq!((page.bytes.as_slice(), page.nulls), (&[2, 0, 0, 0, 3, 0b101][..], 1));
    }
}
