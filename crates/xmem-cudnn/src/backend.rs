//! cuDNN's backend API, as far as plans need it.
//!
//! The numbers are those of `cudnn_graph.h` of cuDNN 9; that header promises that they do not change
//! within a major version.

use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

/// `cudnnBackendDescriptorType_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Kind {
    Convolution = 1,
    Engine = 2,
    EngineConfig = 3,
    EngineHeuristics = 4,
    KnobChoice = 7,
    Forward = 10,
    BackwardFilter = 11,
    BackwardData = 12,
    OperationGraph = 15,
    Tensor = 17,
    DeviceProperties = 38,
}

/// `cudnnBackendAttributeName_t`.
pub(crate) type Attribute = c_int;

/// `cudnnBackendAttributeType_t`, as far as used.
mod value_type {
    use std::ffi::c_int;
    pub(super) const INT64: c_int = 3;
    pub(super) const FLOAT: c_int = 4;
    pub(super) const NUMERICAL_NOTE: c_int = 11;
    pub(super) const DESCRIPTOR: c_int = 15;
    pub(super) const CHAR: c_int = 24;
}

/// Types of attributes that are one value of an enumeration.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum Enumeration {
    DataType = 1,
    ConvolutionMode = 7,
    HeuristicMode = 8,
    Knob = 9,
    /// A number of 32 bits.
    Number = 23,
}

/// `CUDNN_STATUS_NOT_SUPPORTED` or another error status, with the library's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cuDNN status {status}: {text}")]
pub(crate) struct Refusal {
    status: c_int,
    text: String,
}

/// The reason why the library cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("cannot load the library")]
    Load(#[source] libloading::Error),
    #[error("version {0} has no device-less mode; cuDNN 9.8 or later is needed")]
    Old(Version),
}

/// A release of cuDNN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    /// Major, minor, patch level.
    parts: [u32; 3],
}

impl Version {
    /// From `cudnnGetVersion`: 91900 is 9.19.0.
    fn decode(number: usize) -> Self {
        let part = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { parts: [part(number / 10_000), part(number / 100 % 100), part(number % 100)] }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.parts;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// The first release with `CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR`.
const MIN_VERSION: Version = Version { parts: [9, 8, 0] };

type Raw = *mut c_void;
type Create = unsafe extern "C" fn(c_int, *mut Raw) -> c_int;
type Single = unsafe extern "C" fn(Raw) -> c_int;
type Set = unsafe extern "C" fn(Raw, c_int, c_int, i64, *const c_void) -> c_int;
type Get = unsafe extern "C" fn(Raw, c_int, c_int, i64, *mut i64, *mut c_void) -> c_int;
type GetVersion = unsafe extern "C" fn() -> usize;
type LastError = unsafe extern "C" fn(*mut c_char, usize);

/// The loaded library.
pub(crate) struct Backend {
    create: Create,
    destroy: Single,
    finalize: Single,
    set: Set,
    get: Get,
    last_error: LastError,
    version: Version,
    /// Last, so that it is unloaded after everything that points into it.
    _library: Library,
}

impl Backend {
    /// Loads `libcudnn.so.9` in a worker process; the library finds its parts beside it.
    ///
    /// The code of that file runs in this process, as that of a program that is started: the user
    /// names it, or has installed it under cuDNN's file name.
    pub(crate) fn load(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: the file is cuDNN by the user's word. Should it be another, this process is the one
        // that suffers; it holds nothing but this library, and its parent reads only text from it.
        unsafe { Self::load_unchecked(path) }
    }

    /// Loads the library at `path`.
    ///
    /// # Safety
    /// The file must be a cuDNN library of major version 9: its initializers run, and its functions are
    /// called with the signatures of that version.
    unsafe fn load_unchecked(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: the initializers of cuDNN may run in any process; it is cuDNN by the caller.
        let library = unsafe { Library::new(path) }.map_err(LoadError::Load)?;
        // SAFETY: the signature of each function is that of `cudnn_graph.h`, the same in all of 9.x; it is
        // such a library by the caller.
        unsafe {
            let get_version: Symbol<'_, GetVersion> = symbol(&library, b"cudnnGetVersion\0")?;
            let version = Version::decode(get_version());
            if version < MIN_VERSION {
                return Err(LoadError::Old(version));
            }
            Ok(Self {
                create: *symbol::<Create>(&library, b"cudnnBackendCreateDescriptor\0")?,
                destroy: *symbol::<Single>(&library, b"cudnnBackendDestroyDescriptor\0")?,
                finalize: *symbol::<Single>(&library, b"cudnnBackendFinalize\0")?,
                set: *symbol::<Set>(&library, b"cudnnBackendSetAttribute\0")?,
                get: *symbol::<Get>(&library, b"cudnnBackendGetAttribute\0")?,
                last_error: *symbol::<LastError>(&library, b"cudnnGetLastErrorString\0")?,
                version,
                _library: library,
            })
        }
    }

    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    /// A descriptor that is not finalized.
    pub(crate) fn descriptor(&self, kind: Kind) -> Result<Descriptor<'_>, Refusal> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for the one pointer that is written.
        let status = unsafe { (self.create)(kind as c_int, &raw mut raw) };
        self.check(status)?;
        Ok(Descriptor { backend: self, raw })
    }

    fn check(&self, status: c_int) -> Result<(), Refusal> {
        if status == 0 {
            return Ok(());
        }
        let mut text = [0u8; 512];
        // SAFETY: the function writes at most `text.len()` bytes.
        unsafe { (self.last_error)(text.as_mut_ptr().cast(), text.len()) };
        let len = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        Err(Refusal { status, text: String::from_utf8_lossy(&text[..len]).into_owned() })
    }
}

/// A function of the library, by name.
///
/// # Safety
/// `T` must be the type of the function of that name.
unsafe fn symbol<'l, T>(library: &'l Library, name: &[u8]) -> Result<Symbol<'l, T>, LoadError> {
    // SAFETY: by the caller.
    unsafe { library.get(name) }.map_err(LoadError::Load)
}

/// An object of the backend API; destroyed when dropped.
pub(crate) struct Descriptor<'b> {
    backend: &'b Backend,
    raw: Raw,
}

impl Drop for Descriptor<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `create`, destroyed once.
        unsafe { (self.backend.destroy)(self.raw) };
    }
}

impl<'b> Descriptor<'b> {
    /// Ends the setting of attributes: the object can be used from now on.
    pub(crate) fn finalize(&mut self) -> Result<(), Refusal> {
        // SAFETY: `raw` is a live descriptor.
        let status = unsafe { (self.backend.finalize)(self.raw) };
        self.backend.check(status)
    }

    pub(crate) fn set_integers(&mut self, name: Attribute, values: &[i64]) -> Result<(), Refusal> {
        // SAFETY: attributes of this type are 64-bit integers.
        unsafe { self.set(name, value_type::INT64, values) }
    }

    pub(crate) fn set_number(&mut self, name: Attribute, value: f32) -> Result<(), Refusal> {
        // SAFETY: attributes of this type are 32-bit floating-point numbers.
        unsafe { self.set(name, value_type::FLOAT, &[value]) }
    }

    pub(crate) fn set_text(&mut self, name: Attribute, text: &str) -> Result<(), Refusal> {
        // SAFETY: attributes of this type are bytes.
        unsafe { self.set(name, value_type::CHAR, text.as_bytes()) }
    }

    pub(crate) fn set_enumeration(
        &mut self,
        name: Attribute,
        of: Enumeration,
        value: c_int,
    ) -> Result<(), Refusal> {
        // SAFETY: enumerations are of C's type `int`.
        unsafe { self.set(name, of as c_int, &[value]) }
    }

    /// Refers to another descriptor, which cuDNN copies or counts.
    pub(crate) fn set_descriptor(
        &mut self,
        name: Attribute,
        other: &Descriptor<'b>,
    ) -> Result<(), Refusal> {
        // SAFETY: attributes of this type are pointers to descriptors; `other` is alive.
        unsafe { self.set(name, value_type::DESCRIPTOR, &[other.raw]) }
    }

    /// Refers to other descriptors, which cuDNN copies or counts.
    pub(crate) fn set_descriptors(
        &mut self,
        name: Attribute,
        others: &[Descriptor<'b>],
    ) -> Result<(), Refusal> {
        let raw: Vec<Raw> = others.iter().map(|other| other.raw).collect();
        // SAFETY: attributes of this type are pointers to descriptors; all of `others` are alive.
        unsafe { self.set(name, value_type::DESCRIPTOR, &raw) }
    }

    /// Sets an attribute. The library refuses a `value_type` that is not the attribute's.
    ///
    /// # Safety
    /// `T` must be the type of the elements of an attribute of `value_type`, and a pointer among
    /// `values` must point to a live descriptor.
    unsafe fn set<T: Copy>(
        &mut self,
        name: Attribute,
        value_type: c_int,
        values: &[T],
    ) -> Result<(), Refusal> {
        let count = values.len() as i64;
        // SAFETY: `values` holds `count` elements of the type of `value_type`, by the caller; the
        // library reads them during the call only.
        let status = unsafe {
            (self.backend.set)(self.raw, name, value_type, count, values.as_ptr().cast())
        };
        self.backend.check(status)
    }

    /// The value of an attribute that is one integer.
    pub(crate) fn integer(&self, name: Attribute) -> Result<i64, Refusal> {
        let (mut value, mut count) = (0i64, 0i64);
        let place = (&raw mut value).cast();
        // SAFETY: `value` holds the one element that is requested.
        let status = unsafe {
            (self.backend.get)(self.raw, name, value_type::INT64, 1, &raw mut count, place)
        };
        self.backend.check(status)?;
        Ok(value)
    }

    /// One value of an enumeration.
    pub(crate) fn enumeration(&self, name: Attribute, of: Enumeration) -> Result<c_int, Refusal> {
        let (mut value, mut count): (c_int, i64) = (0, 0);
        let place = (&raw mut value).cast();
        // SAFETY: `value` holds the one element that is requested; enumerations are of C's type `int`.
        let status =
            unsafe { (self.backend.get)(self.raw, name, of as c_int, 1, &raw mut count, place) };
        self.backend.check(status)?;
        Ok(value)
    }

    /// The numerical notes of an engine.
    pub(crate) fn numerical_notes(&self, name: Attribute) -> Result<Vec<c_int>, Refusal> {
        let count = self.count(name, value_type::NUMERICAL_NOTE)?;
        let mut notes: Vec<c_int> = vec![0; count];
        let mut got = 0i64;
        // SAFETY: `notes` holds the `count` numbers that are requested.
        let status = unsafe {
            let place = notes.as_mut_ptr().cast();
            let count = count as i64;
            (self.backend.get)(
                self.raw,
                name,
                value_type::NUMERICAL_NOTE,
                count,
                &raw mut got,
                place,
            )
        };
        self.backend.check(status)?;
        notes.truncate(usize::try_from(got).unwrap_or(0));
        Ok(notes)
    }

    /// The descriptors that an attribute holds.
    pub(crate) fn descriptors(
        &self,
        name: Attribute,
        kind: Kind,
    ) -> Result<Vec<Descriptor<'b>>, Refusal> {
        let count = self.count(name, value_type::DESCRIPTOR)?;
        self.descriptors_up_to(name, kind, count)
    }

    /// The descriptors that an attribute holds, so many of them at most. For some attributes the library does not say
    /// how many there are.
    pub(crate) fn descriptors_up_to(
        &self,
        name: Attribute,
        kind: Kind,
        count: usize,
    ) -> Result<Vec<Descriptor<'b>>, Refusal> {
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            all.push(self.backend.descriptor(kind)?);
        }
        let mut raw: Vec<Raw> = all.iter().map(|d| d.raw).collect();
        let mut got = 0i64;
        let count = count as i64;
        let place = raw.as_mut_ptr().cast();
        // SAFETY: `raw` holds the `count` pointers that are requested, each to a live descriptor, which
        // the library fills.
        let status = unsafe {
            (self.backend.get)(self.raw, name, value_type::DESCRIPTOR, count, &raw mut got, place)
        };
        self.backend.check(status)?;
        all.truncate(usize::try_from(got).unwrap_or(0));
        Ok(all)
    }

    fn count(&self, name: Attribute, value_type: c_int) -> Result<usize, Refusal> {
        let mut count = 0i64;
        // SAFETY: only the count is requested, so that nothing is written through the null pointer.
        let status = unsafe {
            (self.backend.get)(self.raw, name, value_type, 0, &raw mut count, ptr::null_mut())
        };
        self.backend.check(status)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}
