//! The libraries of CUDA that get a stand-in, and what their functions do that are not implemented.

use crate::native;
use xmem_elf::Definition;

/// A library of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    /// The driver interface, `libcuda`.
    Driver,
    /// NVML, `libnvidia-ml`.
    Management,
    /// The runtime, `libcudart`.
    Runtime,
    Blas,
    BlasLt,
    Sparse,
    SparseLt,
    Solver,
    Fft,
    Rand,
    Nccl,
    Cupti,
    File,
    Cudnn,
}

impl Family {
    const ALL: [Self; 14] = [
        Self::Driver,
        Self::Management,
        Self::Runtime,
        Self::Blas,
        Self::BlasLt,
        Self::Sparse,
        Self::SparseLt,
        Self::Solver,
        Self::Fft,
        Self::Rand,
        Self::Nccl,
        Self::Cupti,
        Self::File,
        Self::Cudnn,
    ];

    /// The library's name between `lib` and `.so`.
    const fn stem(self) -> &'static str {
        match self {
            Self::Driver => "cuda",
            Self::Management => "nvidia-ml",
            Self::Runtime => "cudart",
            Self::Blas => "cublas",
            Self::BlasLt => "cublasLt",
            Self::Sparse => "cusparse",
            Self::SparseLt => "cusparseLt",
            Self::Solver => "cusolver",
            Self::Fft => "cufft",
            Self::Rand => "curand",
            Self::Nccl => "nccl",
            Self::Cupti => "cupti",
            Self::File => "cufile",
            Self::Cudnn => "cudnn",
        }
    }

    /// The family of a library with this name (`DT_SONAME`). Wheels that carry a library along put a hash
    /// into its name: `libcudart-d0da41ae.so.11.0`.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (stem, _) = name.strip_prefix("lib")?.split_once(".so")?;
        let is_hash = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let stem = match stem.rsplit_once('-') {
            Some((stem, hash)) if is_hash(hash) => stem,
            _ => stem,
        };
        Self::ALL.into_iter().find(|family| family.stem() == stem)
    }

    /// True for a function of the library by its name. Everything else that a library exports, such as
    /// instances of C++ templates, must not be found in its stand-in first.
    pub(crate) fn owns(self, function: &str) -> bool {
        let starts = |prefix: &str| function.starts_with(prefix);
        match self {
            Self::Driver => {
                let third = function.as_bytes().get(2);
                starts("cu") && third.is_some_and(u8::is_ascii_uppercase) && !starts("cuFile")
            }
            Self::Management => starts("nvml"),
            Self::Runtime => starts("cuda") || starts("__cuda"),
            Self::Blas => starts("cublas") && !starts("cublasLt"),
            Self::BlasLt => starts("cublasLt"),
            Self::Sparse => starts("cusparse") && !starts("cusparseLt"),
            Self::SparseLt => starts("cusparseLt"),
            Self::Solver => starts("cusolver"),
            Self::Fft => starts("cufft"),
            Self::Rand => starts("curand"),
            Self::Nccl => starts("nccl") || starts("pnccl"),
            Self::Cupti => starts("cupti"),
            Self::File => starts("cuFile"),
            Self::Cudnn => starts("cudnn"),
        }
    }

    /// The definition of one of the library's functions in the stand-in.
    pub(crate) fn define(self, function: &str) -> Definition {
        if let Some(to) = native::implementation(function) {
            return Definition::Forwards { to };
        }
        if returns_text(function) {
            return Definition::Forwards { to: native::TEXT.to_owned() };
        }
        let reports = |status| Definition::Reports { to: native::REPORT.to_owned(), status };
        match self {
            // cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED
            Self::Driver | Self::Runtime => reports(801),
            Self::Management => reports(3), // NVML_ERROR_NOT_SUPPORTED
            Self::SparseLt => reports(10),  // CUSPARSE_STATUS_NOT_SUPPORTED
            Self::File => reports(5007),    // CU_FILE_PLATFORM_NOT_SUPPORTED
            // One that returns something would leave it unset.
            Self::Cudnn if function.starts_with("cudnnGet") => reports(CUDNN_NOT_SUPPORTED),
            // They set descriptors and start kernels.
            Self::Blas
            | Self::BlasLt
            | Self::Sparse
            | Self::Solver
            | Self::Fft
            | Self::Rand
            | Self::Nccl
            | Self::Cupti
            | Self::Cudnn => Definition::Returns(0),
        }
    }
}

/// `CUDNN_STATUS_NOT_SUPPORTED` of cuDNN 9.
const CUDNN_NOT_SUPPORTED: i32 = 3000;

/// True for a function that returns a text instead of a status.
fn returns_text(function: &str) -> bool {
    ["ErrorString", "StatusString", "StatusName", "ErrorName", "LastErrorString"]
        .iter()
        .any(|end| function.ends_with(end))
        && !function.starts_with("cuGet")
        && function != "cudnnGetLastErrorString"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_names() {
        for (name, family) in [
            ("libcuda.so.1", Some(Family::Driver)),
            ("libcudart.so.13", Some(Family::Runtime)),
            ("libcudart-d0da41ae.so.11.0", Some(Family::Runtime)),
            ("libnvidia-ml.so.1", Some(Family::Management)),
            ("libcublasLt.so.12", Some(Family::BlasLt)),
            ("libcudnn.so.9", Some(Family::Cudnn)),
            ("libcudnn_graph.so.9", None),
            ("libcusolverMg.so.12", None),
            ("libnvrtc.so.13", None),
            ("libnvshmem_host.so.3", None),
            ("libc.so.6", None),
            ("cudart.so", None),
        ] {
            assert_eq!(Family::of(name), family, "{name}");
        }
    }

    #[test]
    fn functions_belong_to_one_library() {
        for (function, family) in [
            ("cuMemCreate", Family::Driver),
            ("cudaMalloc", Family::Runtime),
            ("__cudaRegisterFatBinary", Family::Runtime),
            ("cublasSgemm_v2", Family::Blas),
            ("cublasLtMatmul", Family::BlasLt),
            ("cuFileRead", Family::File),
            ("cusparseLtInit", Family::SparseLt),
            ("cudnnCreate", Family::Cudnn),
            ("nvmlInit_v2", Family::Management),
        ] {
            let owners: Vec<Family> =
                Family::ALL.into_iter().filter(|family| family.owns(function)).collect();
            assert_eq!(owners, [family], "{function}");
        }
        for function in ["_ZNSt6vectorIiE", "malloc", "_init", "custom"] {
            assert!(!Family::ALL.iter().any(|family| family.owns(function)), "{function}");
        }
    }

    #[cfg(supported)]
    #[test]
    fn what_is_not_implemented_has_the_status_of_its_library() {
        let status = |family: Family, function| match family.define(function) {
            Definition::Reports { status, .. } => format!("reports {status}"),
            Definition::Returns(status) => format!("returns {status}"),
            Definition::Forwards { to } => to,
            other => format!("{other:?}"),
        };
        for (family, function, expected) in [
            (Family::Runtime, "cudaMalloc", "vgpu_cudaMalloc"),
            (Family::Runtime, "cudaImportExternalMemory", "reports 801"),
            (Family::Driver, "cuGraphicsMapResources", "reports 801"),
            (Family::Blas, "cublasSgemm_v2", "returns 0"),
            (Family::Blas, "cublasGetStatusString", "vgpu_text"),
            (Family::Driver, "cuGetErrorString", "vgpu_cuGetErrorString"),
            (Family::Cudnn, "cudnnGetErrorString", "vgpu_cudnnGetErrorString"),
            (Family::Cudnn, "cudnnConvolutionForward", "returns 0"),
            (Family::Cudnn, "cudnnGetReductionWorkspaceSize", "reports 3000"),
            (Family::File, "cuFileDriverOpen", "reports 5007"),
        ] {
            assert_eq!(status(family, function), expected, "{function}");
        }
    }
}
