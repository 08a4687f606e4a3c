//! The messages of an ONNX file, as far as they are read (onnx/onnx.proto). Data of tensors are slices of the file.

use prost::Message;
use prost::bytes::Bytes;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelProto {
    #[prost(int64, optional, tag = "1")]
    pub(super) ir_version: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) producer_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) producer_version: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSetIdProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSetIdProto {
    #[prost(string, optional, tag = "1")]
    pub(super) domain: Option<String>,
    #[prost(int64, optional, tag = "2")]
    pub(super) version: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<NodeProto>,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "13")]
    pub(super) value_info: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(super) op_type: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<AttributeProto>,
    #[prost(string, optional, tag = "7")]
    pub(super) domain: Option<String>,
    #[prost(message, repeated, tag = "9")]
    pub(super) metadata_props: Vec<StringStringEntryProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StringStringEntryProto {
    #[prost(string, optional, tag = "1")]
    pub(super) key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeProto {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(float, optional, tag = "2")]
    pub(super) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(super) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) s: Option<Bytes>,
    #[prost(message, optional, tag = "5")]
    pub(super) t: Option<TensorProto>,
    #[prost(message, optional, tag = "6")]
    pub(super) g: Option<GraphProto>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(super) floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(super) ints: Vec<i64>,
}

/// Lists of numbers are packed (`[packed = true]` in onnx.proto): read as bytes, so that weights are not unpacked.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    pub(super) data_type: Option<i32>,
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub(super) float_data: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub(super) int32_data: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub(super) int64_data: Vec<Bytes>,
    #[prost(string, optional, tag = "8")]
    pub(super) name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(super) raw_data: Option<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "10")]
    pub(super) double_data: Vec<Bytes>,
    /// 1 for data in another file.
    #[prost(int32, optional, tag = "14")]
    pub(super) data_location: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfoProto {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(super) r#type: Option<TypeProto>,
    #[prost(message, repeated, tag = "4")]
    pub(super) metadata_props: Vec<StringStringEntryProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor_type: Option<TensorTypeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorTypeProto {
    #[prost(int32, optional, tag = "1")]
    pub(super) elem_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<TensorShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) dim: Vec<DimensionProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DimensionProto {
    #[prost(int64, optional, tag = "1")]
    pub(super) dim_value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) dim_param: Option<String>,
}
