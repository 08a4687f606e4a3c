//! Stubs of the libraries of a GPU machine that cuDNN looks for before it offers an engine.
//!
//! Some engines need the driver, cuBLASLt or the run-time compiler, and cuDNN leaves them out of its
//! lists where it cannot load these. The machine in question has them. So the worker first loads
//! empty libraries of those names, whose functions are the ones below: the calls that an engine makes
//! while it is considered succeed, all others fail. No kernel ever runs. A driver of this machine makes
//! no difference, and its GPU is not touched.
//!
//! The names are those that cuDNN 9.19 reports when one is missing. With these functions its lists were
//! the same as those of PyTorch's CUDA build with stubbed drivers.

use std::ffi::{c_int, c_void};

/// Function of a library, by name.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    address: *const c_void,
}

impl Function {
    /// Its address in this process.
    pub(crate) fn address(&self) -> u64 {
        self.address.addr() as u64
    }
}

/// A library without code of its own.
pub(crate) struct Stub {
    /// Its names, one of each version that cuDNN 9 may have been built with.
    pub(crate) names: &'static [&'static str],
    pub(crate) functions: Vec<Function>,
}

/// All stub libraries.
pub(crate) fn all() -> [Stub; 3] {
    let of = |names: &[&'static str], address: *const c_void| -> Vec<Function> {
        names.iter().map(|&name| Function { name, address }).collect()
    };
    let mut cublas_lt = of(CUBLAS_LT_SETTERS, succeed as *const c_void);
    cublas_lt.extend(of(CUBLAS_LT_MAKERS, make as *const c_void));
    cublas_lt.extend(of(&["cublasLtGetVersion"], cublas_lt_version as *const c_void));
    cublas_lt.extend(of(&["cublasLtMatmulAlgoGetHeuristic"], one_algorithm as *const c_void));
    let mut compiler = of(COMPILER, fail as *const c_void);
    compiler.extend(of(&["nvrtcVersion"], compiler_version as *const c_void));
    [
        Stub {
            names: &["libcuda.so.1", "libcuda.so"],
            functions: of(DRIVER, no_device as *const c_void),
        },
        Stub { names: &["libcublasLt.so.12", "libcublasLt.so.13"], functions: cublas_lt },
        Stub { names: &["libnvrtc.so.12", "libnvrtc.so.13"], functions: compiler },
    ]
}

const DRIVER: &[&str] = &[
    "cuCtxGetCurrent",
    "cuCtxGetLimit",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDriverGetVersion",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuKernelGetAttribute",
    "cuKernelSetAttribute",
    "cuLaunchCooperativeKernel",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuLibraryGetKernel",
    "cuLibraryLoadData",
    "cuLibraryLoadFromFile",
    "cuLibraryUnload",
    "cuLinkAddData",
    "cuLinkComplete",
    "cuLinkCreate",
    "cuLinkDestroy",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuOccupancyMaxPotentialClusterSize",
    "cuStreamGetCtx",
];

const CUBLAS_LT_MAKERS: &[&str] = &[
    "cublasLtCreate",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatrixLayoutCreate",
];

const CUBLAS_LT_SETTERS: &[&str] = &[
    "cublasLtDestroy",
    "cublasLtMatmul",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatrixLayoutSetAttribute",
];

const COMPILER: &[&str] = &[
    "__nvrtcCPEx",
    "nvrtcAddNameExpression",
    "nvrtcCompileProgram",
    "nvrtcCreateProgram",
    "nvrtcDestroyProgram",
    "nvrtcGetCUBIN",
    "nvrtcGetCUBINSize",
    "nvrtcGetErrorString",
    "nvrtcGetLoweredName",
    "nvrtcGetPTX",
    "nvrtcGetPTXSize",
    "nvrtcGetProgramLog",
    "nvrtcGetLTOIR",
    "nvrtcGetLTOIRSize",
    "nvrtcGetNumSupportedArchs",
    "nvrtcGetProgramLogSize",
    "nvrtcGetSupportedArchs",
];

/// `CUDA_ERROR_NO_DEVICE`.
extern "C" fn no_device() -> c_int {
    100
}

extern "C" fn succeed() -> c_int {
    0
}

extern "C" fn fail() -> c_int {
    1
}

extern "C" fn cublas_lt_version() -> usize {
    130_100
}

/// Returns an object that no function of this module reads.
extern "C" fn make(place: Option<&mut *mut c_void>) -> c_int {
    if let Some(place) = place {
        *place = std::ptr::from_mut(place).cast();
    }
    0
}

extern "C" fn compiler_version(major: Option<&mut c_int>, minor: Option<&mut c_int>) -> c_int {
    for (place, part) in [(major, 13), (minor, 0)] {
        if let Some(place) = place {
            *place = part;
        }
    }
    0
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
pub(crate) struct Algorithm {
    algo: [u64; 8],
    workspace: usize,
    status: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// Finds one algorithm, which needs no workspace.
extern "C" fn one_algorithm(
    _handle: *const c_void,
    _operation: *const c_void,
    _a: *const c_void,
    _b: *const c_void,
    _c: *const c_void,
    _d: *const c_void,
    _preference: *const c_void,
    requested: c_int,
    results: Option<&mut Algorithm>,
    found: Option<&mut c_int>,
) -> c_int {
    let wanted = requested > 0;
    if let Some(first) = results.filter(|_| wanted) {
        *first = Algorithm { algo: [0; 8], workspace: 0, status: 0, waves: 1.0, reserved: [0; 4] };
    }
    if let Some(found) = found {
        *found = c_int::from(wanted);
    }
    0
}
