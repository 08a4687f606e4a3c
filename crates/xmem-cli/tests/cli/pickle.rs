//! Memory snapshots by hand: JSON as a pickle.

use serde_json::{Value, json};

/// `value` as a pickle of protocol 4.
pub(crate) fn pickle(value: &Value) -> Vec<u8> {
    let mut bytes = b"\x80\x04".to_vec();
    put(value, &mut bytes);
    bytes.push(b'.');
    bytes
}

/// The opcodes of Lib/pickle.py that plain data needs.
fn put(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Null => bytes.push(b'N'),
        Value::Bool(flag) => bytes.push(if *flag { 0x88 } else { 0x89 }),
        Value::Number(number) => {
            match number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)) {
                Some(number) => {
                    bytes.extend([0x8a, 9]);
                    bytes.extend(&number.to_le_bytes()[..9]);
                }
                None => {
                    bytes.push(b'G');
                    bytes.extend(number.as_f64().expect("a number").to_be_bytes());
                }
            }
        }
        Value::String(text) => {
            bytes.push(b'X');
            bytes.extend(u32::try_from(text.len()).expect("short").to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        Value::Array(items) => {
            bytes.extend(b"](");
            items.iter().for_each(|item| put(item, bytes));
            bytes.push(b'e');
        }
        Value::Object(fields) => {
            bytes.extend(b"}(");
            for (key, value) in fields {
                put(&json!(key), bytes);
                put(value, bytes);
            }
            bytes.push(b'u');
        }
    }
}
