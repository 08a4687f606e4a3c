//! Lists as CSV, in the format of minimalloc's instances: columns `id`, `lower`, `upper` and `size` in any
//! order, half-open lifetimes. Other columns are ignored, but `alignment` only if every plan keeps it.

use crate::list::{BlockList, ListError, PlannedBlock};
use std::collections::BTreeSet;
use thiserror::Error;
use xmem_types::Bytes;

/// What some editors write before text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A list that was read, with the names that its file gives the blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvBlocks {
    /// The list.
    pub list: BlockList,
    /// The names, by the id of the block.
    pub names: Vec<String>,
}

/// The reason why a text is no list.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CsvError {
    /// It is not CSV.
    #[error("not a table of comma-separated values")]
    Csv(#[from] ::csv::Error),
    /// A column is missing.
    #[error("the header has no column `{0}`: write `id,lower,upper,size`")]
    NoColumn(&'static str),
    /// A field is not a number.
    #[error("line {line}: `{text}` in column `{column}` is not a whole number{}", if *.column == "size" { "" } else { " below 2^32" })]
    NoNumber {
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// The text of the field.
        text: String,
    },
    /// Two rows have the same name.
    #[error("line {line}: duplicate block `{name}`")]
    SameName {
        /// The line of the second one, counted from 1.
        line: u64,
        /// The name.
        name: String,
    },
    /// A block ends before it begins, or when it begins.
    #[error("line {line}: block `{name}` has an empty lifetime: ticks {start} to {end}")]
    NoLifetime {
        /// The line, counted from 1.
        line: u64,
        /// The block.
        name: String,
        /// Its first tick.
        start: u32,
        /// The tick before which it is said to end.
        end: u32,
    },
    /// A block asks for an alignment that plans do not have: their offsets are sums of sizes.
    #[error(
        "line {line}: `{alignment}` in column `alignment` needs sizes that are multiples of it: round all sizes up"
    )]
    Alignment {
        /// The line, counted from 1.
        line: u64,
        /// The text of the field.
        alignment: String,
    },
    /// A block makes no sense.
    #[error("not a list of blocks")]
    List(#[from] ListError),
}

/// Reads a list.
///
/// # Errors
/// If the text is not CSV with the four columns, two rows have the same name, a row asks for an alignment that is not that
/// of all sizes, or the blocks make no [`BlockList`].
pub fn read_csv(text: &[u8]) -> Result<CsvBlocks, CsvError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut reader = ::csv::ReaderBuilder::new().trim(::csv::Trim::All).from_reader(text);
    let header = reader.headers()?.clone();
    let column = |name: &'static str| {
        header.iter().position(|field| field == name).ok_or(CsvError::NoColumn(name))
    };
    let [id, lower, upper, size] =
        [column("id")?, column("lower")?, column("upper")?, column("size")?];
    let alignment = header.iter().position(|field| field == "alignment");
    let mut alignments = Vec::new();
    let (mut blocks, mut names) = (Vec::new(), Vec::new());
    let mut known = BTreeSet::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, ::csv::Position::line);
        let number = |index: usize, column: &'static str, most: u64| {
            let text = &record[index];
            let number = text.parse().ok().filter(|&number| number <= most);
            number.ok_or_else(|| CsvError::NoNumber { line, column, text: text.to_owned() })
        };
        let name = record[id].to_owned();
        if !known.insert(name.clone()) {
            return Err(CsvError::SameName { line, name });
        }
        let start = number(lower, "lower", u64::from(u32::MAX))? as u32;
        let end = number(upper, "upper", u64::from(u32::MAX))? as u32;
        if start >= end {
            return Err(CsvError::NoLifetime { line, name, start, end });
        }
        if let Some(alignment) = alignment {
            alignments.push((line, record[alignment].to_owned()));
        }
        names.push(name);
        let size = Bytes(number(size, "size", u64::MAX)?);
        blocks.push(PlannedBlock { size, start, end, operator: None });
    }
    check_alignments(alignments, &blocks)?;
    Ok(CsvBlocks { list: BlockList::new(blocks)?, names })
}

/// Refuses alignments that offsets may not have. All planners put a block on other blocks, so that an offset is a
/// multiple of what divides all sizes.
fn check_alignments(
    alignments: Vec<(u64, String)>,
    blocks: &[PlannedBlock],
) -> Result<(), CsvError> {
    let unit = blocks.iter().fold(0, |unit, block| gcd(unit, block.size.get()));
    let is_kept = |text: &str| match text.parse::<u64>() {
        Ok(alignment) => alignment > 0 && unit % alignment == 0,
        Err(_) => text.is_empty(),
    };
    match alignments.into_iter().find(|(_, alignment)| !is_kept(alignment)) {
        None => Ok(()),
        Some((line, alignment)) => Err(CsvError::Alignment { line, alignment }),
    }
}

const fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn columns_may_come_in_any_order() {
        let read = read_csv(b"size, id,upper,lower\n8,b1,3,0\n4, b2 ,9,5\n").expect("a list");
        assert_eq!(read.names, ["b1", "b2"]);
        let block =
            |size, start, end| PlannedBlock { size: Bytes(size), start, end, operator: None };
        assert_eq!(read.list.blocks(), [block(8, 0, 3), block(4, 5, 9)]);
    }

    #[test]
    fn tables_of_other_programs_are_read() {
        let plain = read_csv(b"id,lower,upper,size\na,0,3,64\nb,1,2,32\n").expect("a list");
        for text in [
            "\u{feff}id,lower,upper,size\na,0,3,64\nb,1,2,32\n",
            "id,lower,upper,size\r\na,0,3,64\r\nb,1,2,32\r\n",
            "id,lower,upper,size\n\na,0,3,64\n\nb,1,2,32",
            "\"id\",\"lower\",\"upper\",\"size\"\n\"a\",0,3,64\n\"b\",1,2,32\n",
            "id,lower,upper,size,alignment,gaps,offset\na,0,3,64,32,,0\nb,1,2,32,,,64\n",
        ] {
            assert_eq!(read_csv(text.as_bytes()).expect(text), plain, "{text}");
        }
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, expected) in [
            ("id,lower,upper\n", "the header has no column `size`: write `id,lower,upper,size`"),
            ("", "the header has no column `id`: write `id,lower,upper,size`"),
            (
                "id,lower,upper,size\na,0,1,4\nb,0,-1,4\n",
                "line 3: `-1` in column `upper` is not a whole number below 2^32",
            ),
            (
                "id,lower,upper,size\na,0,1,x\n",
                "line 2: `x` in column `size` is not a whole number",
            ),
            ("id,lower,upper,size\na,0,1,4\nb,0,1,4\na,2,3,4\n", "line 4: duplicate block `a`"),
            (
                "id,lower,upper,size\na,1,1,4\n",
                "line 2: block `a` has an empty lifetime: ticks 1 to 1",
            ),
            (
                "id,lower,upper,size,alignment\na,0,1,64,32\nb,0,1,96,64\n",
                "line 3: `64` in column `alignment` needs sizes that are multiples of it: round all sizes up",
            ),
            (
                "id,lower,upper,size\na,0,1,9223372036854775808\n",
                "not a list of blocks: the blocks have more than 2^63 bytes together",
            ),
        ] {
            let error = read_csv(text.as_bytes()).expect_err(text);
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            assert_eq!(format!("{error}{cause}"), expected, "{text}");
        }
    }
}
