//! The words that a string may be, from the types that they are names of.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::marker::PhantomData;
use xmem::analyzer::Role;

/// Stands for a string that is the name of a `T`.
pub(crate) struct NameOf<T>(PhantomData<T>);

trait Named {
    fn names() -> Vec<&'static str>;
}

macro_rules! named {
    ($($kind:ty),+ $(,)?) => {
        $(impl Named for $kind {
            fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|one| one.name()).collect()
            }
        })+
    };
}

named!(
    xmem::Decision,
    xmem::Verdict,
    xmem::analyzer::Role,
    xmem::predict::AllocatorKind,
    xmem_eval::Difference,
    xmem_gate::TightBy,
    xmem_studies::difference::DifferenceKey,
    xmem_studies::offload::LayerKind,
    xmem_studies::offloading::PolicyChoice,
    xmem_studies::planning::DnnMemCategory,
);

impl<T: Named> JsonSchema for NameOf<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": T::names() })
    }
}

/// Bytes under the name of each role.
pub(crate) fn bytes_by_role(_: &mut SchemaGenerator) -> Schema {
    let bytes = |role: Role| {
        let description = match role {
            Role::Parameter => "Model parameters.",
            Role::Buffer => "Tensors of the model without gradient.",
            Role::Gradient => "Gradients of parameters.",
            Role::OptimizerState => "State that the optimizer keeps between steps.",
            Role::Activation => "Forward results that backward needs.",
            Role::Input => "Batch data.",
            Role::Temporary => "Allocated and freed within one phase.",
            Role::Workspace => "Scratch memory of libraries.",
            Role::Unknown => "No evidence for any of the others.",
            other => panic!("the role `{}` has no description", other.name()),
        };
        json_schema!({ "description": description, "type": "integer", "minimum": 0 })
    };
    let properties = Role::ALL.map(|role| (role.name().to_owned(), bytes(role).into()));
    let properties: Map<String, Value> = properties.into_iter().collect();
    json_schema!({ "type": "object", "required": Role::ALL.map(Role::name), "properties": properties })
}
