//! Where libraries cannot be files in memory: cuDNN's device-less mode is used on Linux only.

#[derive(Debug, thiserror::Error)]
#[error("cuDNN is asked on Linux only")]
pub(crate) struct PreloadError;

pub(crate) const fn preload_stubs() -> Result<(), PreloadError> {
    Err(PreloadError)
}
