//! Types of elements.

/// The type of a tensor's elements (c10/core/ScalarType.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// `torch.bool`.
    Bool,
    /// `torch.uint8`.
    U8,
    /// `torch.int8`.
    I8,
    /// `torch.int16`.
    I16,
    /// `torch.int32`.
    I32,
    /// `torch.int64`.
    I64,
    /// `torch.float16`.
    F16,
    /// `torch.bfloat16`.
    BF16,
    /// `torch.float32`.
    F32,
    /// `torch.float64`.
    F64,
    /// `torch.complex64`.
    C64,
    /// `torch.complex128`.
    C128,
}

impl DType {
    /// Returns whether an index of this type chooses the places where it is true.
    pub(crate) const fn is_of_masks(self) -> bool {
        matches!(self, Self::Bool | Self::U8)
    }

    /// Bytes of an element.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Returns whether gradients of this type exist.
    #[must_use]
    pub const fn is_differentiable(self) -> bool {
        self.is_floating_point() || matches!(self, Self::C64 | Self::C128)
    }

    /// Returns whether this is a floating-point type.
    #[must_use]
    pub const fn is_floating_point(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// The name in the profiler's `Input type` (c10's caffe2 type names, `TypeMeta::name`).
    pub(crate) const fn profiler_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "unsigned char",
            Self::I8 => "signed char",
            Self::I16 => "short int",
            Self::I32 => "int",
            Self::I64 => "long int",
            Self::F16 => "c10::Half",
            Self::BF16 => "c10::BFloat16",
            Self::F32 => "float",
            Self::F64 => "double",
            Self::C64 => "c10::complex<float>",
            Self::C128 => "c10::complex<double>",
        }
    }

    /// The number of the type in c10::ScalarType.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::U8 => 0,
            Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 => 3,
            Self::I64 => 4,
            Self::F16 => 5,
            Self::F32 => 6,
            Self::F64 => 7,
            Self::C64 => 9,
            Self::C128 => 10,
            Self::Bool => 11,
            Self::BF16 => 15,
        }
    }

    /// The type with this number in the serialized form of torch.export
    /// (torch/_export/serde/schema.py, `ScalarType`).
    pub(crate) const fn of_export(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::U8,
            2 => Self::I8,
            3 => Self::I16,
            4 => Self::I32,
            5 => Self::I64,
            6 => Self::F16,
            7 => Self::F32,
            8 => Self::F64,
            10 => Self::C64,
            11 => Self::C128,
            12 => Self::Bool,
            13 => Self::BF16,
            _ => return None,
        })
    }

    /// The type with this number in ONNX (onnx/onnx.proto, `TensorProto.DataType`); types that PyTorch lacks are those
    /// of the same size.
    pub(crate) const fn of_onnx(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::F32,
            2 | 17..=20 => Self::U8,
            3 => Self::I8,
            4 | 5 => Self::I16,
            6 | 12 => Self::I32,
            7 | 13 => Self::I64,
            9 => Self::Bool,
            10 => Self::F16,
            11 => Self::F64,
            14 => Self::C64,
            15 => Self::C128,
            16 => Self::BF16,
            _ => return None,
        })
    }

    /// The name in PyTorch, without `torch.`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        }
    }

    /// The type by its name in PyTorch, with or without `torch.`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("torch.").unwrap_or(name) {
            "bool" => Self::Bool,
            "uint8" => Self::U8,
            "int8" => Self::I8,
            "int16" | "short" => Self::I16,
            "int32" | "int" => Self::I32,
            "int64" | "long" => Self::I64,
            "float16" | "half" | "fp16" => Self::F16,
            "bfloat16" | "bf16" => Self::BF16,
            "float32" | "float" | "fp32" => Self::F32,
            "float64" | "double" => Self::F64,
            "complex64" => Self::C64,
            "complex128" => Self::C128,
            _ => return None,
        })
    }

    /// The type of a computation with both (c10/core/ScalarType.cpp, `promoteTypes`).
    pub(crate) fn promoted(self, other: Self) -> Self {
        use DType::{BF16, Bool, C64, C128, F16, F32, F64, I8, I16, U8};
        if self == other {
            return self;
        }
        let complex = |t: Self| matches!(t, C64 | C128);
        if complex(self) || complex(other) {
            let wide = [self, other].iter().any(|t| matches!(t, C128 | F64));
            return if wide { C128 } else { C64 };
        }
        match (self.is_floating_point(), other.is_floating_point()) {
            (true, false) => self,
            (false, true) => other,
            (true, true) => match (self, other) {
                (F64, _) | (_, F64) => F64,
                (F32, _) | (_, F32) => F32,
                (F16, BF16) | (BF16, F16) => F32,
                _ => self,
            },
            (false, false) => match (self, other) {
                (Bool, t) | (t, Bool) => t,
                (U8, I8) | (I8, U8) => I16,
                (a, b) => a.max(b),
            },
        }
    }
}
