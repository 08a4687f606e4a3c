//! A reader of Thrift's compact protocol: fields by number, without a schema.

use std::collections::BTreeMap;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
    List(Vec<Value>),
    Record(Record),
}

/// The fields of a struct by number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record(BTreeMap<u8, Value>);

impl Record {
    /// Reads a struct, and takes it off the front.
    pub(crate) fn take(bytes: &mut &[u8]) -> Self {
        let mut fields = BTreeMap::new();
        let mut number = 0;
        loop {
            let header = byte(bytes);
            if header == 0 {
                return Self(fields);
            }
            assert!(header >> 4 > 0, "fields with long distances are not used");
            number += header >> 4;
            fields.insert(number, Value::take(header & 15, bytes));
        }
    }

    pub(crate) fn number(&self, field: u8) -> i64 {
        match &self.0[&field] {
            Value::Number(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }

    pub(crate) fn text(&self, field: u8) -> &str {
        match &self.0[&field] {
            Value::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    pub(crate) fn record(&self, field: u8) -> &Self {
        match &self.0[&field] {
            Value::Record(record) => record,
            other => panic!("{other:?} is no struct"),
        }
    }

    pub(crate) fn records(&self, field: u8) -> impl Iterator<Item = &Self> {
        let Value::List(list) = &self.0[&field] else { panic!("field {field} is no list") };
        list.iter().map(|value| match value {
            Value::Record(record) => record,
            other => panic!("{other:?} is no struct"),
        })
    }

    pub(crate) fn has(&self, field: u8) -> bool {
        self.0.contains_key(&field)
    }
}

impl Value {
    fn take(kind: u8, bytes: &mut &[u8]) -> Self {
        match kind {
            5 | 6 => {
                let coded = varint(bytes);
                Self::Number((coded >> 1) as i64 ^ -((coded & 1) as i64))
            }
            8 => {
                let length = varint(bytes) as usize;
                let (text, rest) = bytes.split_at(length);
                *bytes = rest;
                Self::Text(String::from_utf8(text.to_vec()).expect("UTF-8"))
            }
            9 => {
                let header = byte(bytes);
                let count = if header >> 4 == 15 { varint(bytes) } else { (header >> 4).into() };
                Self::List((0..count).map(|_| Self::take(header & 15, bytes)).collect())
            }
            12 => Self::Record(Record::take(bytes)),
            kind => panic!("type {kind}"),
        }
    }
}

fn byte(bytes: &mut &[u8]) -> u8 {
    let (&first, rest) = bytes.split_first().expect("a byte");
    *bytes = rest;
    first
}

pub(crate) fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(bytes);
        value |= u64::from(next & 0x7f) << shift;
        if next < 0x80 {
            return value;
        }
    }
    panic!("a number of more than 64 bits");
}
