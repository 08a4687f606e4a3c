//! A reader of protocol buffers: fields in their order, without a schema.

/// A field: its number, and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    number: u64,
    value: Value<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a>(Vec<Field<'a>>);

impl<'a> Message<'a> {
    pub(crate) fn read(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (content, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(content)
                }
                kind => panic!("wire type {kind}"),
            };
            fields.push(Field { number: tag >> 3, value });
        }
        Self(fields)
    }

    pub(crate) fn number(&self, field: u64) -> Option<u64> {
        self.0.iter().find(|f| f.number == field).map(|f| match f.value {
            Value::Number(number) => number,
            Value::Bytes(_) => panic!("field {field} is no number"),
        })
    }

    pub(crate) fn text(&self, field: u64) -> Option<&'a str> {
        self.bytes(field).next().map(|text| std::str::from_utf8(text).expect("UTF-8"))
    }

    pub(crate) fn messages(&self, field: u64) -> impl Iterator<Item = Message<'a>> {
        self.bytes(field).map(Message::read)
    }

    pub(crate) fn message(&self, field: u64) -> Option<Message<'a>> {
        self.messages(field).next()
    }

    fn bytes(&self, field: u64) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |f| f.number == field).map(|f| match f.value {
            Value::Bytes(bytes) => bytes,
            Value::Number(_) => panic!("field {} is a number", f.number),
        })
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&first, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first < 0x80 {
            return value;
        }
    }
    panic!("a number of more than 64 bits");
}
