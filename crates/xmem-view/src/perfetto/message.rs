//! Protocol buffers, as far as a writer needs them: variable-length integers, texts and messages, by field number.
//!
//! Source: "Encoding" of the Protocol Buffers documentation.

/// A message in the making. Fields appear in the order in which they are added.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// Wire types.
const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// A field that is an integer, an enumerator or a truth value.
    #[must_use]
    pub(super) fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    #[must_use]
    pub(super) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    #[must_use]
    pub(super) fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// As `message`, or unchanged where there is none.
    #[must_use]
    pub(super) fn optional(self, field: u64, message: Option<Self>) -> Self {
        match message {
            Some(message) => self.message(field, &message),
            None => self,
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Adds a message to a repeated field in place.
    pub(super) fn push(&mut self, field: u64, message: &Self) {
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(message.0.len() as u64);
        self.0.extend_from_slice(&message.0);
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Seven bits a byte, the lowest first; the high bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the documentation.
    #[test]
    fn messages_are_encoded_as_documented() {
        assert_eq!(Message::new().number(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        let text = Message::new().text(2, "testing");
        assert_eq!(text.into_bytes(), *b"\x12\x07testing");
        let inner = Message::new().number(1, 150);
        assert_eq!(Message::new().message(3, &inner).into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::new().number(16, u64::MAX).into_bytes().len(), 12);
    }
}
