//! Arguments of `xmem export`.

use crate::choice::choice;
use crate::device;
use crate::values::{Offered, count, duration};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use xmem::Bytes;
use xmem_recorder::OverlayChoice;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "The script needs no change and no GPU. It runs on the CPU until it has made a step; the forward pass of that\n\
        iteration, with its loss, is exported by torch.export (2.6 or newer). The archive has the graph and what the\n\
        loop does around it (extra/xmem.job.json), and no weights. What the script writes is kept out of your files.\n\n\
        Examples:\n  \
        xmem export -- python train.py\n  \
        xmem export -o runs/bert.pt2 -- python train.py --batch-size 32\n  \
        xmem export --from-step 3 -- python train.py\n\n\
        Exit code: 0 exported, 2 usage error, 3 nothing was written."
)]
pub(crate) struct ExportArgs {
    /// Training command with its arguments: what follows its first word is the command's
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// Archive to write
    #[arg(short, long, value_name = "FILE", default_value = "model.pt2", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Step of the iteration that is exported, for scripts whose first iterations differ from the others
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = count::<NonZeroU32>)]
    pub(crate) from_step: NonZeroU32,
    /// GPU that torch.cuda reports to the script; `xmem devices` lists the names (default: a100-40g)
    #[arg(long, value_name = "NAME", value_parser = Offered::new(device::offered), hide_possible_values = true)]
    pub(crate) device_as: Option<String>,
    /// Load zeros for weights that are not on this machine: transformers' from_pretrained needs config.json only, and
    /// files of safetensors may be cut off after their header
    #[arg(long, hide_short_help = true)]
    pub(crate) without_weights: bool,
    /// Let the script write to this file or folder, or to `all`. By default, what it writes or removes is kept in a
    /// private folder, and your files stay as they are; temporary folders are left as they are
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) let_write: Vec<PathBuf>,
    /// How writes are kept out of your files: by a mount namespace, or by a library that is preloaded; `auto` takes the
    /// namespace where it works
    #[arg(long, value_name = "HOW", value_parser = choice::<OverlayChoice>(), default_value = "auto", hide_short_help = true)]
    pub(crate) overlay: OverlayChoice,
    /// Stop after this time, for example 90s, 30m or 2h (default: no limit)
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
    /// Stop when the command uses this much memory (default: when the host runs out of memory)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device, hide_short_help = true, help_heading = "Limits")]
    pub(crate) max_memory: Option<Bytes>,
}
