//! Lists as CSV, in the format of minimalloc's instances: columns `id`, `lower`, `upper` and `size` in any
//! order, half-open lifetimes.

use crate::list::{Block, BlockList, ListError};
use std::collections::BTreeSet;
use thiserror::Error;
use xmem_types::Bytes;

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
    #[error("line {line}: there is a block `{name}` before")]
    SameName {
        /// The line of the second one, counted from 1.
        line: u64,
        /// The name.
        name: String,
    },
    /// A block makes no sense.
    #[error("not a list of blocks")]
    List(#[from] ListError),
}

/// Reads a list.
///
/// # Errors
/// If the text is not CSV with the four columns, two rows have the same name, or its blocks make no [`BlockList`].
pub fn read_csv(text: &[u8]) -> Result<CsvBlocks, CsvError> {
    let mut reader = ::csv::ReaderBuilder::new().trim(::csv::Trim::All).from_reader(text);
    let header = reader.headers()?.clone();
    let column = |name: &'static str| {
        header.iter().position(|field| field == name).ok_or(CsvError::NoColumn(name))
    };
    let [id, lower, upper, size] =
        [column("id")?, column("lower")?, column("upper")?, column("size")?];
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
        names.push(name);
        blocks.push(Block {
            size: Bytes(number(size, "size", u64::MAX)?),
            start: number(lower, "lower", u64::from(u32::MAX))? as u32,
            end: number(upper, "upper", u64::from(u32::MAX))? as u32,
            operator: None,
        });
    }
    Ok(CsvBlocks { list: BlockList::new(blocks)?, names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn columns_may_come_in_any_order() {
        let read = read_csv(b"size, id,upper,lower\n8,b1,3,0\n4, b2 ,9,5\n").expect("a list");
        assert_eq!(read.names, ["b1", "b2"]);
        let block = |size, start, end| Block { size: Bytes(size), start, end, operator: None };
        assert_eq!(read.list.blocks(), [block(8, 0, 3), block(4, 5, 9)]);
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
            (
                "id,lower,upper,size\na,0,1,4\nb,0,1,4\na,2,3,4\n",
                "line 4: there is a block `a` before",
            ),
            (
                "id,lower,upper,size\na,1,1,4\n",
                "not a list of blocks: block 0 is live from tick 1 to tick 1, which is no time",
            ),
        ] {
            let error = read_csv(text.as_bytes()).expect_err(text);
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            assert_eq!(format!("{error}{cause}"), expected, "{text}");
        }
    }
}
