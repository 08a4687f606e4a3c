//! Arguments that choose the source of convolutions' workspaces.

use clap::Args;
use std::path::PathBuf;
use xmem_cudnn::SourceChoice;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Convolutions")]
pub(crate) struct CudnnArgs {
    /// Source of the workspace sizes: auto (a cuDNN library if one is found, else the built-in
    /// model), the path of a library or of a Python environment that contains one, a folder with
    /// cached answers, model, or none for no workspaces (default: XMEM_CUDNN, else auto)
    #[arg(long, value_name = "SOURCE")]
    pub(crate) cudnn: Option<SourceChoice>,
    /// Folder in which answers of the library are cached, or off (default: ~/.cache/xmem)
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cudnn_cache: Option<PathBuf>,
}
