//! Nodes of ONNX and the calls of ATen that stand for them, a row a node.

use super::proto::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use super::{is_model, read};
use crate::error::GraphError;
use crate::graph::{Argument, Graph, InputRole};
use crate::training::{Training, Workload};
use prost::Message as _;
use prost::bytes::Bytes;

/// A model of a text: `input x f32 2,3`, `weight w 4,3`, `ints s 1,-1`, `number c 0.5`, `output y`, or a node:
/// `Conv x w -> y; pads=1,1,1,1; group=1; auto_pad=VALID`.
pub(super) fn model(text: &str) -> Vec<u8> {
    let mut graph = GraphProto::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split([' ', ';']).filter(|w| !w.is_empty()).collect();
        match words.as_slice() {
            ["input", name, dtype, dims @ ..] => graph.input.push(value(name, dtype, dims)),
            ["sizes", name, dtype, dims @ ..] => graph.value_info.push(value(name, dtype, dims)),
            ["output", name] => graph.output.push(value(name, "f32", &[])),
            ["weight", name, dims @ ..] => graph.initializer.push(TensorProto {
                dims: dims.first().map(|dims| numbers(dims)).unwrap_or_default(),
                ..tensor(name, 1, Vec::new())
            }),
            ["ints", name, list] => {
                let list = numbers(list);
                let raw = list.iter().flat_map(|v| v.to_le_bytes()).collect();
                graph
                    .initializer
                    .push(TensorProto { dims: vec![list.len() as i64], ..tensor(name, 7, raw) });
            }
            ["int", name, number] => {
                let number: i64 = number.parse().expect("a number");
                graph.initializer.push(tensor(name, 7, number.to_le_bytes().to_vec()));
            }
            ["number", name, number] => {
                let number: f32 = number.parse().expect("a number");
                graph.initializer.push(tensor(name, 1, number.to_le_bytes().to_vec()));
            }
            _ => graph.node.push(node(&words)),
        }
    }
    ModelProto {
        ir_version: Some(8),
        producer_name: Some("test".to_owned()),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        ..ModelProto::default()
    }
    .encode_to_vec()
}

fn numbers(text: &str) -> Vec<i64> {
    text.split(',').map(|n| n.parse().expect("a number")).collect()
}

fn tensor(name: &str, data_type: i32, raw: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(data_type),
        raw_data: Some(Bytes::from(raw)),
        ..TensorProto::default()
    }
}

fn value(name: &str, dtype: &str, dims: &[&str]) -> ValueInfoProto {
    let dimension = |text: &str| match text.parse() {
        Ok(size) => DimensionProto { dim_value: Some(size), dim_param: None },
        Err(_) => DimensionProto { dim_value: None, dim_param: Some(text.to_owned()) },
    };
    let shape =
        dims.first().map(|dims| TensorShapeProto { dim: dims.split(',').map(dimension).collect() });
    let elem_type = match dtype {
        "i64" => 7,
        "bool" => 9,
        _ => 1,
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto { elem_type: Some(elem_type), shape }),
        }),
        ..ValueInfoProto::default()
    }
}

fn node(words: &[&str]) -> NodeProto {
    let arrow = words.iter().position(|w| *w == "->").expect("a node has results");
    let (outputs, attributes): (Vec<&str>, Vec<&str>) =
        words[arrow + 1..].iter().partition(|w| !w.contains('='));
    let attribute = |text: &str| {
        let (name, value) = text.split_once('=').expect("an attribute");
        let mut attribute =
            AttributeProto { name: Some(name.to_owned()), ..AttributeProto::default() };
        match value.split(',').map(str::parse).collect::<Result<Vec<i64>, _>>() {
            Ok(list) if value.contains(',') => attribute.ints = list,
            Ok(list) => attribute.i = list.first().copied(),
            Err(_) => match value.parse() {
                Ok(float) => attribute.f = Some(float),
                Err(_) => attribute.s = Some(Bytes::copy_from_slice(value.as_bytes())),
            },
        }
        attribute
    };
    let text = |word: &&str| if *word == "_" { String::new() } else { (*word).to_owned() };
    let (domain, operator) = words[0].split_once("::").unwrap_or(("", words[0]));
    NodeProto {
        op_type: Some(operator.to_owned()),
        domain: Some(domain.to_owned()),
        input: words[1..arrow].iter().map(text).collect(),
        output: outputs.iter().map(text).collect(),
        attribute: attributes.into_iter().map(attribute).collect(),
        ..NodeProto::default()
    }
}

fn training() -> Workload {
    let optimizer = crate::Optimizer::parse("sgd").expect("it is known");
    Workload { training: Some(Training::new(optimizer)), ..Workload::default() }
}

fn graph(text: &str, workload: &Workload) -> Result<Graph, GraphError> {
    read(model(text))?.graph(workload)
}

/// The calls with the sizes of their results.
fn calls(graph: &Graph) -> String {
    let sizes = |id: &crate::graph::ValueId| {
        let tensor = graph.body.values[id.0 as usize].tensor.as_ref().expect("a tensor");
        let dims: Vec<String> = tensor
            .dims
            .iter()
            .map(|d| d.value(&graph.symbols).expect("known").to_string())
            .collect();
        format!("[{}]", dims.join(","))
    };
    let call = |operation: &crate::graph::Operation| {
        let target = operation.target.strip_prefix("aten.").unwrap_or(&operation.target);
        let name = target.strip_suffix(".default").unwrap_or(target);
        let results = operation.results.iter().flat_map(|result| match result {
            crate::graph::ResultValue::One(id) => id.iter().map(sizes).collect::<Vec<_>>(),
            crate::graph::ResultValue::Many(ids) => ids.iter().flatten().map(sizes).collect(),
        });
        format!("{name}{}", results.collect::<String>())
    };
    graph.body.nodes.iter().map(call).collect::<Vec<_>>().join(" ")
}

/// Runs a model of `x` and `y` (2,3,8,8), `m` (4,6), `ids` (2,5) and `flags` (4,6), whose last result is `z`.
fn row(nodes: &str) -> String {
    let text = format!(
        "input x f32 2,3,8,8\ninput y f32 2,3,8,8\ninput m f32 4,6\ninput ids i64 2,5\ninput flags bool 4,6\n{nodes}\noutput z"
    );
    let graph = match graph(&text, &training()) {
        Ok(graph) => graph,
        Err(error) => return format!("error: {error}"),
    };
    let run = crate::act(&graph, &Workload::default()).expect("it runs");
    assert!(run.different_sizes.is_empty(), "{nodes}: {:?}", run.different_sizes);
    let unknown: Vec<String> =
        run.unknown_operators.iter().map(|name| format!(" unknown {name}")).collect();
    calls(&graph) + &unknown.concat()
}

#[test]
fn nodes_are_calls_with_the_sizes_of_their_results() {
    for (nodes, expected) in [
        // Layers.
        ("weight w 4,3,3,3\nConv x w -> z; pads=1,1,1,1; strides=2,2", "conv2d[2,4,4,4]"),
        ("weight w 6,1,3,3\nConv x w -> z; group=3", "conv2d[2,6,6,6]"),
        (
            "weight w 4,3,3,3\nConv x w -> z; auto_pad=SAME_UPPER; strides=2,2",
            "constant_pad_nd[2,3,9,9] conv2d[2,4,4,4]",
        ),
        ("weight w 3,5,2,2\nConvTranspose x w -> z; strides=2,2", "conv_transpose2d[2,5,16,16]"),
        ("weight w 7,6\nweight b 7\nGemm m w b -> z; transB=1", "linear[4,7]"),
        ("weight w 6,7\nweight b 7\nGemm m w b -> z", "addmm[4,7]"),
        ("weight w 8,7\nMatMul x w -> z", "linear[2,3,8,7]"),
        ("MatMul x y -> z", "matmul[2,3,8,8]"),
        (
            "Transpose y -> t; perm=0,1,3,2\nEinsum x t -> z; equation=bchw,bcwd->bchd",
            "permute[2,3,8,8] permute[2,3,8,8] reshape[6,8,8] permute[2,3,8,8] reshape[6,8,8] bmm[6,8,8] view[2,3,8,8] permute[2,3,8,8]",
        ),
        ("Dropout x -> z", "dropout[2,3,8,8]"),
        ("Attention x y y -> z; is_causal=1", "scaled_dot_product_attention[2,3,8,8]"),
        ("Softmax x -> z; axis=-1", "softmax.int[2,3,8,8]"),
        ("LogSoftmax m -> z", "log_softmax.int[4,6]"),
        (
            "ints s 8,6,8\nReshape x s -> t\nweight w 2,12,8\nweight r 2,12,3\nweight b 2,24\nLSTM t w r b -> z h c",
            "reshape[8,6,8] onnx::LSTM[8,2,6,3][2,6,3][2,6,3] unknown onnx::LSTM",
        ),
        // Normalizations.
        (
            "weight w 3\nweight b 3\nweight u 3\nweight v 3\nBatchNormalization x w b u v -> z",
            "add_.Tensor[] batch_norm[2,3,8,8]",
        ),
        ("weight w 8\nweight b 8\nLayerNormalization x w b -> z", "layer_norm[2,3,8,8]"),
        ("weight w 8\nRMSNormalization x w -> z", "rms_norm[2,3,8,8]"),
        (
            "weight w 3\nweight b 3\nGroupNormalization x w b -> z; num_groups=3",
            "group_norm[2,3,8,8]",
        ),
        (
            "weight w 3\nweight b 3\nInstanceNormalization x w b -> z",
            "repeat[6] repeat[6] reshape[1,6,8,8] batch_norm[1,6,8,8] view[2,3,8,8]",
        ),
        // Pooling.
        ("MaxPool x -> z; kernel_shape=3,3; strides=2,2; pads=1,1,1,1", "max_pool2d[2,3,4,4]"),
        ("AveragePool x -> z; kernel_shape=2,2; strides=2,2", "avg_pool2d[2,3,4,4]"),
        ("AveragePool x -> z; kernel_shape=3,3; strides=2,2; ceil_mode=1", "avg_pool2d[2,3,4,4]"),
        ("GlobalAveragePool x -> z", "adaptive_avg_pool2d[2,3,1,1]"),
        ("GlobalMaxPool x -> z", "max_pool2d[2,3,1,1]"),
        (
            "ints s 2,3,16,12\nResize x _ _ s -> z; mode=nearest",
            "upsample_nearest2d.vec[2,3,16,12]",
        ),
        (
            "DepthToSpace w -> z; blocksize=2\nConcat x x x x -> w; axis=1",
            "error: the graph is damaged: `w` is used before it is computed: nodes must be in the order in which they run",
        ),
        (
            "Concat x x x x -> w; axis=1\nDepthToSpace w -> z; blocksize=2",
            "cat[2,12,8,8] pixel_shuffle[2,3,16,16]",
        ),
        (
            "SpaceToDepth x -> z; blocksize=2",
            "view[2,3,4,2,4,2] permute[2,3,2,2,4,4] reshape[2,12,4,4]",
        ),
        // Each element.
        ("Relu x -> z", "relu[2,3,8,8]"),
        ("Gelu x -> z", "gelu[2,3,8,8]"),
        ("number a 0\nnumber b 6\nClip x a b -> z", "hardtanh[2,3,8,8]"),
        ("number a 0\nClip x a -> z", "clamp_min[2,3,8,8]"),
        ("number c 2\nMul c x -> z", "mul.Tensor[2,3,8,8]"),
        ("number c 2\nSub c x -> z", "rsub.Scalar[2,3,8,8]"),
        ("number c 2\nDiv c x -> z", "reciprocal[2,3,8,8] mul.Tensor[2,3,8,8]"),
        ("number c 2\nPow x c -> z", "pow.Tensor_Scalar[2,3,8,8]"),
        ("number c 0\nMax m c -> z", "clamp[4,6]"),
        ("Min x y x -> z", "minimum[2,3,8,8] minimum[2,3,8,8]"),
        ("number c 0\nWhere flags m c -> z", "where.self[4,6]"),
        ("Cast m -> z; to=10", "to.dtype[4,6]"),
        ("Not flags -> z", "logical_not[4,6]"),
        ("Less x y -> z", "lt.Tensor[2,3,8,8]"),
        // Views.
        ("ints s 0,-1\nReshape x s -> z", "reshape[2,192]"),
        ("Flatten x -> z", "reshape[2,192]"),
        ("Transpose m -> z", "permute[6,4]"),
        ("ints a 0\nUnsqueeze m a -> z", "unsqueeze[1,4,6]"),
        ("ints s 5,4,6\nExpand m s -> z", "expand[5,4,6]"),
        ("ints r 2,1\nTile m r -> z", "repeat[8,6]"),
        ("Split x -> z u; axis=3", "split_with_sizes[2,3,8,4][2,3,8,4]"),
        (
            "ints s 1\nints e 9223372036854775807\nints a 2\nSlice x s e a -> z",
            "slice.Tensor[2,3,7,8]",
        ),
        ("ints p 0,0,1,2,0,0,3,4\nPad x p -> z", "constant_pad_nd[2,3,12,14]"),
        // Indices.
        ("weight w 9,4\nGather w ids -> z", "embedding[2,5,4]"),
        ("int i 1\nGather x i -> z; axis=1", "select.int[2,8,8]"),
        ("ints i 0,2\nGather x i -> z; axis=1", "index_select[2,2,8,8]"),
        (
            "GatherElements m u -> z; axis=1\nArgMax m -> u; axis=1",
            "error: the graph is damaged: `u` is used before it is computed: nodes must be in the order in which they run",
        ),
        ("ArgMax m -> u; axis=1\nGatherElements m u -> z; axis=1", "argmax[4,1] gather[4,1]"),
        ("ints k 2\nTopK m k -> z i", "topk[4,2][4,2]"),
        // Reductions.
        ("ReduceMean x -> z; axes=2,3; keepdims=0", "mean.dim[2,3]"),
        ("ReduceL2 m -> z; axes=1", "linalg_vector_norm[4,1]"),
        ("int a 1\nCumSum m a -> z", "cumsum[4,6]"),
        // Shapes are computed; what they make is a tensor.
        (
            "int i 0\nints a 0\nints r -1\nShape x -> s\nGather s i -> n\nUnsqueeze n a -> n1\nConcat n1 r -> t; axis=0\nReshape x t -> z",
            "reshape[2,192]",
        ),
        // Paddings, as TorchScript turns PyTorch's around.
        (
            "ints p 1,2,0,3,0,0,0,0\nints r -1,2\nReshape p r -> a\nints s -1\nints e -9223372036854775807\nints x0 0\nSlice a s e x0 s -> b\nTranspose b -> c; perm=1,0\nints f -1\nReshape c f -> d\nPad x d -> z",
            "constant_pad_nd[2,3,11,11]",
        ),
        ("int i 0\nint j 40\nint k 1\nRange i j k -> z", "arange.start[40]"),
        ("ints s 40,40\nConstantOfShape s -> z", "full[40,40]"),
        ("Size x -> s\nCast s -> f; to=1\nMul x f -> z", "mul.Tensor[2,3,8,8]"),
        // Neither.
        ("sizes z f32 2,3,8,8\nNonsense x -> z", "onnx::Nonsense[2,3,8,8] unknown onnx::Nonsense"),
        (
            "other::Nonsense x -> z",
            "error: the size of `z` is not known: `other::Nonsense` has no definition here, and the file does not say the sizes of its results",
        ),
        (
            "weight w 4,5,3,3\nConv x w -> z; strides=0,0",
            "error: the graph is damaged: `Conv`: the strides are [0, 0]",
        ),
        (
            "ints s 5,-1\nReshape x s -> z",
            "error: the graph is damaged: `Reshape`: [2, 3, 8, 8] cannot have the sizes [5, -1]",
        ),
    ] {
        assert_eq!(row(nodes), expected, "{nodes}");
    }
}

#[test]
fn nodes_of_one_operator_are_put_together() {
    let gelu = "number r 1.41421356\nnumber o 1\nnumber h 0.5\nDiv m r -> d\nErf d -> e\nAdd e o -> s\nMul m s -> p\nMul p h -> z";
    let norm = "weight w 6\nweight b 6\nnumber two 2\nnumber eps 1e-5\nints a -1\nReduceMean m -> u; axes=-1\nSub m u -> c\nPow c two -> q\nReduceMean q -> v; axes=-1\nAdd v eps -> ve\nSqrt ve -> r\nDiv c r -> n\nMul n w -> nw\nAdd nw b -> z";
    let attention = "number s 0.5\nTranspose y -> kt; perm=0,1,3,2\nMul x s -> qs\nMul kt s -> ks\nMatMul qs ks -> p\nSoftmax p -> w; axis=-1\nMatMul w y -> z";
    for (nodes, expected) in [
        (gelu, "gelu[4,6]"),
        // Something else uses a part of it.
        (
            &gelu.replace("Mul p h -> z", "Mul p h -> g\nAdd g e -> z"),
            "div.Tensor[4,6] erf[4,6] add.Tensor[4,6] mul.Tensor[4,6] mul.Tensor[4,6] add.Tensor[4,6]",
        ),
        (norm, "layer_norm[4,6]"),
        (
            &norm.replace("axes=-1", "axes=-1,-2"),
            "mean.dim[1,1] sub.Tensor[4,6] pow.Tensor_Scalar[4,6] mean.dim[1,1] add.Tensor[1,1] sqrt[1,1] div.Tensor[4,6] mul.Tensor[4,6] add.Tensor[4,6]",
        ),
        (attention, "scaled_dot_product_attention[2,3,8,8]"),
        // The product alone is scaled: a model's own attention.
        (
            &attention.replace("MatMul qs ks -> p", "MatMul x kt -> p0\nMul p0 s -> p"),
            "permute[2,3,8,8] matmul[2,3,8,8] mul.Tensor[2,3,8,8] softmax.int[2,3,8,8] matmul[2,3,8,8]",
        ),
        ("weight w 8,5\nweight b 5\nMatMul x w -> p\nAdd b p -> z", "linear[2,3,8,5]"),
        ("weight w 5,8\nTranspose w -> t\nMatMul x t -> z", "linear[2,3,8,5]"),
        ("HardSigmoid x -> s\nMul x s -> z", "hardswish[2,3,8,8]"),
        ("Sigmoid x -> s\nMul x s -> z", "sigmoid[2,3,8,8] mul.Tensor[2,3,8,8]"),
        ("Sqrt x -> r\nReciprocal r -> z", "rsqrt[2,3,8,8]"),
    ] {
        assert_eq!(row(nodes), expected, "{nodes}");
    }
}

#[test]
fn sizes_that_the_file_leaves_open_are_those_of_the_workload() {
    let text = "input ids i64 N,L\nweight w 9,4\nGather w ids -> z\noutput z";
    let mut workload = training();
    let says =
        |workload: &Workload| graph(text, workload).map(|g| calls(&g)).map_err(|e| e.to_string());
    assert_eq!(
        says(&workload),
        Err("the size of `ids` is not known: the file leaves its dimension 1 (`L`) open: name it with --length".to_owned())
    );
    workload.length = Some(7);
    assert_eq!(says(&workload), Ok("embedding[1,7,4]".to_owned()));
    workload.batch = Some(3);
    assert_eq!(says(&workload), Ok("embedding[3,7,4]".to_owned()));
}

#[test]
fn a_batch_that_the_file_fixes_is_changed_where_its_sizes_allow_it() {
    let mut workload = training();
    workload.batch = Some(6);
    let says = |text: &str| graph(text, &workload).map(|g| calls(&g)).map_err(|e| e.to_string());
    assert_eq!(
        says("input x f32 2,4\nRelu x -> z\nsizes z f32 2,4\noutput z"),
        Ok("relu[6,4]".to_owned())
    );
    assert_eq!(
        says("input x f32 2,4\nints s 2,2,2\nReshape x s -> z\noutput z"),
        Err("the graph was exported with fixed sizes, and cannot have others: [6, 4] cannot have the sizes [2, 2, 2] at `Reshape` (export it with dynamic_axes or dynamic_shapes)".to_owned())
    );
    workload.length = Some(6);
    assert_eq!(
        graph("input x f32 2,4\nRelu x -> z\noutput z", &workload).map_err(|e| e.to_string()).err(),
        Some("the length of sequences cannot be changed: the graph was exported with a fixed one (export it with dynamic_shapes, as xmem export does)".to_owned())
    );
}

#[test]
fn sizes_of_the_file_are_a_check() {
    let graph = graph("input x f32 2,4\nRelu x -> z\nsizes z f32 2,5\noutput z", &training());
    let run = crate::act(&graph.expect("it is whole"), &Workload::default()).expect("it runs");
    assert_eq!(run.different_sizes, ["aten.relu.default"]);
}

#[test]
fn weights_are_parameters_and_equal_vectors_are_one_of_each_layer() {
    let text = "input x f32 2,4\nweight w 4,4\nweight b 4\nints i 0,1\nGemm x w b -> y; transB=1\nGemm y w b -> u; transB=1\nGather u i -> z\noutput z";
    let graph = graph(text, &training()).expect("it is whole");
    let paths: Vec<&InputRole> = graph.inputs.iter().map(|input| &input.role).collect();
    let parameter = |path: &str| InputRole::Parameter(path.to_owned());
    let expected = [
        &InputRole::Batch,
        &parameter("w"),
        &parameter("b"),
        &parameter("b_3"),
        &InputRole::Buffer("i".to_owned()),
    ];
    assert_eq!(paths, expected);
}

#[test]
fn layers_behave_as_in_inference_without_training() {
    let text = "input x f32 2,3,8,8\nweight w 3\nweight b 3\nweight u 3\nweight v 3\nBatchNormalization x w b u v -> y\nDropout y -> z\noutput z";
    let graph = graph(text, &Workload::default()).expect("it is whole");
    assert_eq!(calls(&graph), "batch_norm[2,3,8,8]");
    let training = graph.body.nodes[0].arguments.iter().find(|(name, _)| name == "training");
    assert!(matches!(training, Some((_, Argument::Bool(false)))));
}

#[test]
fn a_model_is_known_by_its_first_bytes() {
    assert!(is_model(&model("input x f32 2,4\nRelu x -> z\noutput z")));
    for bytes in
        [&b""[..], b"PK\x03\x04", b"{\"a\": 1}", b"\x08\x00\x3a", b"\x08\x07\x03", b"\x80\x02"]
    {
        assert!(!is_model(bytes), "{bytes:?}");
    }
}
