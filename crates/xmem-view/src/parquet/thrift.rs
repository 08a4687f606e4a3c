//! Thrift's compact protocol, as far as a writer of Parquet's metadata needs it.
//!
//! Source: "Thrift compact protocol encoding" of Apache Thrift's documentation.

/// Types of fields and of elements.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct in the making. Fields are added in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    bytes: Vec<u8>,
    last: u8,
}

impl Record {
    pub(super) fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub(super) fn i32(mut self, field: u8, value: i32) -> Self {
        self.header(field, I32);
        signed(&mut self.bytes, value.into());
        self
    }

    #[must_use]
    pub(super) fn i64(mut self, field: u8, value: i64) -> Self {
        self.header(field, I64);
        signed(&mut self.bytes, value);
        self
    }

    #[must_use]
    pub(super) fn text(mut self, field: u8, text: &str) -> Self {
        self.header(field, BINARY);
        binary(&mut self.bytes, text);
        self
    }

    #[must_use]
    pub(super) fn record(mut self, field: u8, record: Self) -> Self {
        self.header(field, STRUCT);
        self.bytes.extend(record.into_bytes());
        self
    }

    #[must_use]
    pub(super) fn records(mut self, field: u8, records: Vec<Self>) -> Self {
        self.header(field, LIST);
        list(&mut self.bytes, records.len(), STRUCT);
        for record in records {
            self.bytes.extend(record.into_bytes());
        }
        self
    }

    #[must_use]
    pub(super) fn numbers(mut self, field: u8, numbers: &[i32]) -> Self {
        self.header(field, LIST);
        list(&mut self.bytes, numbers.len(), I32);
        for &number in numbers {
            signed(&mut self.bytes, number.into());
        }
        self
    }

    #[must_use]
    pub(super) fn texts(mut self, field: u8, texts: &[&str]) -> Self {
        self.header(field, LIST);
        list(&mut self.bytes, texts.len(), BINARY);
        for text in texts {
            binary(&mut self.bytes, text);
        }
        self
    }

    /// The struct, ended.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// A field's type, and the distance of its number from that of the last field, which is below 16 in Parquet.
    fn header(&mut self, field: u8, kind: u8) {
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
    }
}

fn list(bytes: &mut Vec<u8>, count: usize, kind: u8) {
    if count < 15 {
        bytes.push((count as u8) << 4 | kind);
    } else {
        bytes.push(0xf0 | kind);
        unsigned(bytes, count as u64);
    }
}

fn binary(bytes: &mut Vec<u8>, text: &str) {
    unsigned(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// Small numbers of either sign are short: 0, -1, 1, -2, ... in that order.
fn signed(bytes: &mut Vec<u8>, value: i64) {
    unsigned(bytes, (value << 1 ^ value >> 63) as u64);
}

/// Seven bits a byte, the lowest first; the high bit says that more follow.
pub(super) fn unsigned(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_encoded_as_documented() {
        let record = Record::new().i32(1, -1).i64(3, 150).text(4, "ab");
        assert_eq!(
            record.into_bytes(),
            [0x15, 0x01, 0x26, 0xac, 0x02, 0x18, 0x02, b'a', b'b', 0x00]
        );
        let lists = Record::new().numbers(1, &[1, 2]).records(2, vec![Record::new()]);
        assert_eq!(lists.into_bytes(), [0x19, 0x25, 0x02, 0x04, 0x19, 0x1c, 0x00, 0x00]);
        let long = Record::new().texts(1, &["x"; 15]).into_bytes();
        assert_eq!(&long[..4], [0x19, 0xf8, 0x0f, 0x01]);
    }
}
