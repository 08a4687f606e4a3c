//! How many messages a file has, counted before they are decoded: a message of two bytes becomes a hundred in memory.

use prost::bytes::Buf;
use prost::encoding::{self, DecodeContext, WireType};

/// Files with more messages and strings are refused. Those of models with thousands of layers have some hundred
/// thousand.
pub(super) const MAX_MESSAGES: usize = 1 << 21;

/// Messages within messages, deeper than this, are refused by prost.
const DEEPEST: usize = 100;

/// A message that has others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    Shape,
    /// Text, or a message without others.
    Leaf,
}

/// The kind of a field by its number (onnx/onnx.proto); `None` for one that is not read.
fn field(of: Kind, tag: u32) -> Option<Kind> {
    Some(match (of, tag) {
        (Kind::Model, 7) | (Kind::Attribute, 6) => Kind::Graph,
        (Kind::Graph, 1) => Kind::Node,
        (Kind::Graph, 5) | (Kind::Attribute, 5) => Kind::Tensor,
        (Kind::Graph, 11..=13) => Kind::ValueInfo,
        (Kind::Node, 5) => Kind::Attribute,
        (Kind::ValueInfo, 2) => Kind::Type,
        (Kind::Type, 1) => Kind::TensorType,
        (Kind::TensorType, 2) => Kind::Shape,
        (Kind::Model, 8)
        | (Kind::Node, 1 | 2 | 9)
        | (Kind::ValueInfo, 4)
        | (Kind::Shape, 1)
        | (Kind::Tensor, 4 | 5 | 7 | 10) => Kind::Leaf,
        _ => return None,
    })
}

/// Returns whether a file has few enough messages; one that is damaged has, up to the damage.
pub(super) fn is_within(bytes: &[u8]) -> bool {
    let mut left = MAX_MESSAGES;
    count(bytes, Kind::Model, 0, &mut left)
}

fn count(mut bytes: &[u8], kind: Kind, depth: usize, left: &mut usize) -> bool {
    if depth > DEEPEST {
        return true;
    }
    while bytes.has_remaining() {
        let Ok((tag, wire)) = encoding::decode_key(&mut bytes) else { return true };
        if wire != WireType::LengthDelimited {
            // Whole numbers in a list that is not packed become eight bytes each.
            let is_list = matches!((kind, tag), (Kind::Attribute, 7 | 8) | (Kind::Tensor, 1));
            if is_list && !spend(left) {
                return false;
            }
            if encoding::skip_field(wire, tag, &mut bytes, DecodeContext::default()).is_err() {
                return true;
            }
            continue;
        }
        let Ok(length) = encoding::decode_varint(&mut bytes) else { return true };
        let Some((inside, rest)) =
            usize::try_from(length).ok().and_then(|length| bytes.split_at_checked(length))
        else {
            return true;
        };
        bytes = rest;
        let is_packed = matches!((kind, tag), (Kind::Attribute, 7 | 8) | (Kind::Tensor, 1));
        if is_packed && inside.len() > MAX_MESSAGES {
            return false;
        }
        if let Some(inner) = field(kind, tag) {
            if !spend(left) {
                return false;
            }
            if inner != Kind::Leaf && !count(inside, inner, depth + 1, left) {
                return false;
            }
        }
    }
    true
}

fn spend(left: &mut usize) -> bool {
    match left.checked_sub(1) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MESSAGES, is_within};

    /// A field of bytes.
    fn field(tag: u8, inside: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag << 3 | 2];
        prost::encoding::encode_varint(inside.len() as u64, &mut bytes);
        bytes.extend_from_slice(inside);
        bytes
    }

    #[test]
    fn a_file_of_empty_messages_is_refused_before_it_is_decoded() {
        let nodes = |count: usize| field(7, &[0x0a, 0x00].repeat(count));
        assert!(is_within(&nodes(1000)));
        assert!(!is_within(&nodes(MAX_MESSAGES + 1)));
        assert!(
            is_within(&field(7, &field(5, &field(9, &vec![0; 4 * MAX_MESSAGES])))),
            "weights do not count"
        );
        assert!(is_within(b"\x3a\xff\xff\xff"), "damage is found by the decoder");
    }
}
