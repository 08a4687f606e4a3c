//! Operator arguments in a short notation, written out as Kineto's four fields.
//!
//! Arguments are separated by blanks: `f32[8,64]` a contiguous tensor, `f32[8,64]:1,8` one with
//! strides, `{8,64;8}` a list of tensors, `(1,1)` a list of numbers, `-` an argument that is not recorded, anything else a value.

/// The four fields of an operator event, with a comma at the end.
pub(crate) fn fields(arguments: &str) -> String {
    let parsed: Vec<Argument> = arguments.split_whitespace().map(Argument::read).collect();
    let join = |field: fn(&Argument) -> String| -> String {
        parsed.iter().map(field).collect::<Vec<_>>().join(", ")
    };
    format!(
        r#""Concrete Inputs": [{}], "Input type": [{}], "Input Strides": [{}], "Input Dims": [{}],"#,
        join(|a| format!("{:?}", a.value)),
        join(|a| format!("{:?}", a.kind)),
        join(|a| format!("[{}]", a.strides)),
        join(|a| format!("[{}]", a.dims)),
    )
}

/// Name of an element type in this notation and in Kineto's.
const TYPES: &[(&str, &str)] = &[
    ("f32", "float"),
    ("f64", "double"),
    ("f16", "c10::Half"),
    ("bf16", "c10::BFloat16"),
    ("i64", "long int"),
    ("i32", "int"),
    ("u8", "unsigned char"),
    ("bool", "bool"),
];

struct Argument {
    kind: String,
    dims: String,
    strides: String,
    value: String,
}

impl Argument {
    fn read(text: &str) -> Self {
        let new = |kind: &str, dims: &str, strides: &str, value: &str| Self {
            kind: kind.into(),
            dims: dims.into(),
            strides: strides.into(),
            value: value.into(),
        };
        if text == "-" {
            return new("", "", "", "");
        }
        if let Some(list) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            return new("ScalarList", "", "", &format!("[{}]", list.replace(',', ", ")));
        }
        if let Some(list) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
            let dims: Vec<String> = list.split(';').map(|dims| format!("[{dims}]")).collect();
            return new("TensorList", &dims.join(", "), "", "");
        }
        let tensor = TYPES.iter().find_map(|(short, long)| {
            Some((*long, text.strip_prefix(short)?.strip_prefix('[')?.split_once(']')?))
        });
        let Some((kind, (dims, strides))) = tensor else { return new("Scalar", "", "", text) };
        let strides = match strides.strip_prefix(':') {
            Some(given) => given.to_owned(),
            None => contiguous(dims),
        };
        new(kind, dims, &strides, "")
    }
}

fn contiguous(dims: &str) -> String {
    let sizes: Vec<u64> = dims.split(',').filter_map(|d| d.parse().ok()).collect();
    let strides = (0..sizes.len()).map(|i| sizes[i + 1..].iter().product::<u64>().to_string());
    strides.collect::<Vec<_>>().join(",")
}
