//! Columns of whole numbers as bytes: little-endian base-128 numbers, seven bits a byte, plain or as differences.
//! `web/src/data/columns.ts` reads them.

use serde::Serialize;

/// The description of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ColumnHead {
    name: &'static str,
    encoding: Encoding,
    count: usize,
    bytes: usize,
}

/// The way in which values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Encoding {
    /// Each value.
    Plain,
    /// The difference to the value before it, the first to 0; the sign in the lowest bit.
    Delta,
}

/// Columns, one after the other.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) heads: Vec<ColumnHead>,
    pub(super) bytes: Vec<u8>,
}

impl Columns {
    /// Adds a column. Values above 2^53 are not exact on the page: there are none among bytes and moments.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        encoding: Encoding,
        values: impl Iterator<Item = u64>,
    ) {
        let before = self.bytes.len();
        let (mut count, mut last) = (0, 0_u64);
        for value in values {
            count += 1;
            match encoding {
                Encoding::Plain => self.number(value),
                Encoding::Delta => {
                    let difference = value.wrapping_sub(last) as i64;
                    self.number(((difference << 1) ^ (difference >> 63)) as u64);
                    last = value;
                }
            }
        }
        let bytes = self.bytes.len() - before;
        self.heads.push(ColumnHead { name, encoding, count, bytes });
    }

    fn number(&mut self, mut value: u64) {
        while value > 127 {
            self.bytes.push((value & 127) as u8 | 128);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(encoding: Encoding, values: &[u64]) -> Vec<u8> {
        let mut columns = Columns::default();
        columns.add("a", encoding, values.iter().copied());
        let [head] = &columns.heads[..] else { panic!("one column") };
        assert_eq!((head.count, head.bytes), (values.len(), columns.bytes.len()));
        columns.bytes
    }

    #[test]
    fn values_take_seven_bits_a_byte() {
        assert_eq!(encoded(Encoding::Plain, &[0, 127, 128, 300]), [0, 127, 128, 1, 172, 2]);
        assert_eq!(encoded(Encoding::Plain, &[1 << 28]), [128, 128, 128, 128, 1]);
    }

    #[test]
    fn differences_have_their_sign_in_the_lowest_bit() {
        assert_eq!(encoded(Encoding::Delta, &[5, 5, 4, 6, 0]), [10, 0, 1, 4, 11]);
    }
}
