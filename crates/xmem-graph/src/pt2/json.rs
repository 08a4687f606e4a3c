//! JSON as a tree that borrows from its text: graphs of large models have some millions of characters, of which a fraction
//! is read.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Members that are not kept: where an operator was called in the model's code.
const UNREAD: [&str; 4] = ["stack_trace", "source_fn_stack", "torch_fn", "from_node"];

/// A value.
#[derive(Debug, Default)]
pub(super) enum Json<'t> {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number beyond those of `Int`.
    Large(u64),
    Float(f64),
    Text(Cow<'t, str>),
    List(Vec<Self>),
    Object(Object<'t>),
}

/// Members in the order of the text.
#[derive(Debug)]
pub(super) struct Object<'t>(Vec<(Cow<'t, str>, Json<'t>)>);

impl<'t> Object<'t> {
    /// The member of this name; the last of several.
    pub(super) fn get(&self, key: &str) -> Option<&Json<'t>> {
        self.0.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Json<'t>)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }
}

impl<'t> Json<'t> {
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    pub(super) fn as_object(&self) -> Option<&Object<'t>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(super) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Int(value) => u64::try_from(*value).ok(),
            Self::Large(value) => Some(*value),
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as JSON's numbers become floats")]
    pub(super) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Large(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }
}

/// As text without white space.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separated =
            |f: &mut fmt::Formatter<'_>, at: usize| f.write_str(if at > 0 { "," } else { "" });
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Large(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(list) => {
                f.write_str("[")?;
                for (at, value) in list.iter().enumerate() {
                    separated(f, at)?;
                    write!(f, "{value}")?;
                }
                f.write_str("]")
            }
            Self::Object(object) => {
                f.write_str("{")?;
                for (at, (key, value)) in object.iter().enumerate() {
                    separated(f, at)?;
                    write!(f, "{key:?}:{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(i64::try_from(value).map_or(Json::Large(value), Json::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(Json::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json<'de>, A::Error> {
        let mut object = Vec::new();
        while let Some(Key(key)) = members.next_key()? {
            if UNREAD.contains(&&*key) {
                members.next_value::<IgnoredAny>()?;
            } else {
                object.push((key, members.next_value()?));
            }
        }
        Ok(Json::Object(Object(object)))
    }
}

/// The name of a member, borrowed where it has no escapes.
struct Key<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Name;
        impl<'de> Visitor<'de> for Name {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_text() {
        let text = r#"{"a": [1, -2, 18446744073709551615, 1.5, true, null, "x\n"], "stack_trace": "…", "a b": {"c": 1}, "c": 2, "c": 3}"#;
        let json: Json<'_> = serde_json::from_str(text).expect("JSON");
        assert_eq!(
            json.to_string(),
            r#"{"a":[1,-2,18446744073709551615,1.5,true,null,"x\n"],"a b":{"c":1},"c":2,"c":3}"#
        );
        let list = json.get("a").and_then(Json::as_array).expect("a list");
        assert_eq!((list[0].as_u64(), list[1].as_u64()), (Some(1), None));
        assert_eq!((list[2].as_u64(), list[2].as_i64()), (Some(u64::MAX), None));
        assert_eq!((list[1].as_f64(), list[3].as_f64()), (Some(-2.0), Some(1.5)));
        assert_eq!((list[6].as_str(), list[4].as_bool()), (Some("x\n"), Some(true)));
        assert_eq!(json.get("c").and_then(Json::as_i64), Some(3), "the last one counts");
        serde_json::from_str::<Json<'_>>("[1, 2").expect_err("cut off");
    }
}
