//! From a recorded call stack to the few words that help: the operator, the innermost line of
//! Python, and the line of the user's own code that led there.

use crate::{Frame, Snapshot, StackId};

/// The call site of a recorded event, as far as its call stack has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The innermost operator (`aten::addmm`); only where C++ frames were recorded.
    pub op: Option<String>,
    /// The innermost Python frame (`torch/optim/adam.py:791 _multi_tensor_adam`).
    pub line: Option<String>,
    /// The innermost Python frame outside of installed packages, if that is another one.
    pub caller: Option<String>,
}

impl Site {
    /// The site of the stack `id` of `snapshot`.
    #[must_use]
    pub fn of(snapshot: &Snapshot, id: StackId) -> Self {
        let frames = || snapshot.frames.stack(id).iter().map(|&frame| snapshot.frames.frame(frame));
        let text = |frame: Frame| Text::of(snapshot, frame);
        let python = || frames().map(text).filter(|text| text.is_python() && !text.is_recorder());
        let innermost = python().next();
        let own = python().find(|text| !text.is_installed());
        Self {
            op: frames().map(text).find_map(|text| text.operator()),
            line: innermost.map(Text::to_line),
            caller: own.filter(|own| Some(*own) != innermost).map(Text::to_line),
        }
    }

    /// Returns whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The part of a program that a call stack shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallPart {
    /// A workspace of cuBLAS is made (aten/src/ATen/cuda/CublasHandlePool.cpp).
    Workspace,
    /// Gradients are cleared (`zero_grad` of torch/optim/optimizer.py and torch/nn/modules/module.py).
    ZeroGrad,
    /// An optimizer runs (torch/optim).
    Optimizer,
    /// Autograd runs (torch/csrc/autograd/engine.cpp, torch/autograd).
    Backward,
    /// Data is loaded (torch/utils/data).
    Data,
    /// A module runs (torch/nn/modules/module.py, `_call_impl`).
    Forward,
    /// A model is moved or converted, by `Module._apply` (torch/nn/modules/module.py) at a line of that file, which is
    /// one for parameters and a later one for buffers.
    Apply {
        /// The line.
        line: u32,
    },
    /// A module makes its parameters (constructors in torch/nn/modules, torch/nn/parameter.py).
    Init,
    /// None of these.
    Unknown,
    /// No frame was recorded, or none of Python: a thread of C++, such as those of autograd.
    NoFrame,
}

impl CallPart {
    /// The part that the innermost frame shows which shows any.
    #[must_use]
    pub fn of(snapshot: &Snapshot, id: StackId) -> Self {
        let texts = || {
            let frames = snapshot.frames.stack(id).iter();
            frames.map(|&frame| Text::of(snapshot, snapshot.frames.frame(frame)))
        };
        let shown = texts().find_map(|text| text.part());
        if shown == Some(Self::Forward) && texts().any(|text| text.recomputes()) {
            return Self::Backward;
        }
        let is_python = || texts().any(|text| text.is_python());
        shown.unwrap_or_else(|| if is_python() { Self::Unknown } else { Self::NoFrame })
    }
}

/// Returns whether a stack was recorded inside `torch.cuda.empty_cache` (torch/cuda/memory.py).
pub(crate) fn is_empty_cache(snapshot: &Snapshot, id: StackId) -> bool {
    let mut frames = snapshot.frames.stack(id).iter().map(|&frame| snapshot.frames.frame(frame));
    frames.any(|frame| {
        let name = snapshot.strings.resolve(frame.name);
        name == "empty_cache" || name.contains("emptyCache")
    })
}

/// A frame's texts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Text<'s> {
    name: &'s str,
    file: &'s str,
    line: u32,
}

impl<'s> Text<'s> {
    fn of(snapshot: &'s Snapshot, frame: Frame) -> Self {
        let text = |sym| snapshot.strings.resolve(sym);
        Self { name: text(frame.name), file: text(frame.filename), line: frame.line }
    }

    fn part(&self) -> Option<CallPart> {
        let Self { name, file, .. } = *self;
        let is_cublas =
            name.contains("CUDABlas") && (name.contains("Workspace") || name.contains("Handle"));
        Some(if is_cublas {
            CallPart::Workspace
        } else if name == "zero_grad"
            && (file.ends_with("torch/optim/optimizer.py")
                || file.ends_with("torch/nn/modules/module.py"))
        {
            CallPart::ZeroGrad
        } else if file.contains("torch/optim/") {
            CallPart::Optimizer
        } else if name.contains("torch::autograd::Engine::")
            || name == "_engine_run_backward"
            || (name == "backward"
                && (file.ends_with("torch/_tensor.py")
                    || file.ends_with("torch/autograd/__init__.py")))
        {
            CallPart::Backward
        } else if file.contains("torch/utils/data/") {
            CallPart::Data
        } else if file.ends_with("torch/nn/modules/module.py") && name.ends_with("_call_impl") {
            CallPart::Forward
        } else if file.ends_with("torch/nn/modules/module.py") && name == "_apply" {
            CallPart::Apply { line: self.line }
        } else if file.ends_with("torch/nn/parameter.py")
            || file.contains("torch/nn/modules/") && name == "__init__"
        {
            CallPart::Init
        } else {
            return None;
        })
    }

    /// Returns whether backward runs a part of forward again (torch/utils/checkpoint.py).
    fn recomputes(&self) -> bool {
        self.part() == Some(CallPart::Backward) && self.name != "backward" && !self.is_python()
            || self.file.ends_with("torch/utils/checkpoint.py")
                && matches!(self.name, "recompute_fn" | "unpack_hook" | "backward")
    }

    fn is_python(&self) -> bool {
        self.file.ends_with(".py") || self.file.starts_with('<')
    }

    /// Returns whether it is a function of `xmem profile`, which names its files so.
    fn is_recorder(&self) -> bool {
        self.file.starts_with("torch/xmem_recorder/")
    }

    /// Returns whether the file is part of an installed package or of PyTorch. Recordings name
    /// files by their full path, or from a package's folder on.
    fn is_installed(&self) -> bool {
        const FOLDERS: [&str; 3] = ["site-packages/", "dist-packages/", "lib/python"];
        const PACKAGES: [&str; 5] =
            ["torch/", "torchvision/", "transformers/", "accelerate/", "lightning/"];
        self.file.starts_with("<frozen")
            || FOLDERS.iter().any(|folder| self.file.contains(folder))
            || PACKAGES.iter().any(|package| self.file.starts_with(package))
    }

    /// Generated code calls operators through `at::_ops::NAME::call` (torchgen/gen.py).
    fn operator(&self) -> Option<String> {
        let (name, _) = self.name.strip_prefix("at::_ops::")?.split_once("::")?;
        // Overloads are part of the name there: `add_Tensor`.
        let base = name.split_once(char::is_uppercase).map_or(name, |(base, _)| base);
        Some(format!("aten::{}", base.strip_suffix('_').filter(|_| base != name).unwrap_or(base)))
    }

    fn to_line(self) -> String {
        let file = ["site-packages/", "dist-packages/"]
            .iter()
            .find_map(|folder| self.file.split_once(folder))
            .map_or(self.file, |(_, inside)| inside);
        format!("{file}:{} {}", self.line, self.name)
    }
}
