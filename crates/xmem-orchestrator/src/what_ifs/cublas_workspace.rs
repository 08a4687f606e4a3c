//! Another size of cuBLAS's workspaces (aten/src/ATen/cuda/CublasHandlePool.cpp, `parseChosenWorkspaceSize`).

use super::{Values, WhatIf};
use crate::change::{Change, WhatIfError};
use crate::parse_cublas_workspace_config;
use crate::target::Target;
use std::sync::Arc;
use xmem_analyzer::Profile;
use xmem_types::Bytes;

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "cublas-workspace",
    values: Values::Free("CONFIG", "`:KiB:count`, for example :4096:8 or :0:0"),
    help: "CUBLAS_WORKSPACE_CONFIG of the job, for example :4096:8",
    change: |value| Some(Arc::new(CublasWorkspace(parse_cublas_workspace_config(value)?))),
};

#[derive(Debug)]
struct CublasWorkspace(Bytes);

impl Change for CublasWorkspace {
    fn target(&self, _: &Profile, target: &mut Target) -> Result<(), WhatIfError> {
        target.cublas_workspace = Some(self.0);
        Ok(())
    }
}
