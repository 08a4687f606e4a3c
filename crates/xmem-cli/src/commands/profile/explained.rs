//! Codes and explanations of recordings that failed or are incomplete.

use crate::error::Explanation;
use crate::exit::Exit;
use xmem_recorder::RecordError;

/// The code of a recording that was saved, but is incomplete.
pub(super) const INCOMPLETE: &str = "XM0533";

/// The code of a recording from which nothing was saved.
pub(super) const fn code(error: &RecordError) -> &'static str {
    match error {
        RecordError::NeedsUnix => "XM0511",
        RecordError::SnapshotOfTheCpu | RecordError::CapacityOfTheCpu => "XM0512",
        RecordError::NotAFile { .. } => "XM0513",
        RecordError::HookDisabled { .. } => "XM0514",
        RecordError::Spawn { .. } => "XM0515",
        RecordError::Session { .. } => "XM0516",
        RecordError::Overlay { .. } => "XM0517",
        RecordError::HookNotLoaded { .. } => "XM0518",
        RecordError::Shadowed { .. } => "XM0519",
        RecordError::NotATrace { .. } => "XM0520",
        RecordError::Export { .. } => "XM0521",
        RecordError::Stalled { .. } => "XM0522",
        RecordError::NoTorch { .. } => "XM0523",
        RecordError::Unsupported { .. } => "XM0524",
        RecordError::NoVirtualGpu { .. } => "XM0525",
        RecordError::OtherUser { .. } => "XM0526",
        RecordError::NothingRan { .. } => "XM0527",
        RecordError::Raised { .. } => "XM0528",
        RecordError::NoGraph { .. } => "XM0529",
        RecordError::Died { .. } => "XM0530",
        RecordError::Failed { .. } => "XM0531",
        RecordError::Output { .. } => "XM0532",
    }
}

/// The explanations of these codes.
pub(crate) const EXPLAINED: &[Explanation] = &[
    Explanation {
        code: "XM0511",
        exit: Exit::Usage,
        title: "recording on an unsupported system",
        cause: "The recorder needs Linux or macOS.",
        example: "xmem profile -- python train.py",
        fix: "Record on Linux, macOS or WSL. `xmem replay` reads traces on every system, also those of torch.profiler.",
    },
    Explanation {
        code: "XM0512",
        exit: Exit::Usage,
        title: "option of the virtual GPU",
        cause: "`--snapshot`, `--enforce` and `--capacity` need the virtual GPU, and the command records on the CPU.",
        example: "xmem profile --engine cpu --enforce -- python train.py",
        fix: "Record on the virtual GPU: `xmem profile --virtual-gpu a100-40g --enforce -- python train.py`.",
    },
    Explanation {
        code: "XM0513",
        exit: Exit::Usage,
        title: "output that is not a file",
        cause: "`--output` names a folder or a device.",
        example: "xmem profile -o runs/ -- python train.py",
        fix: "Name a file: `xmem profile -o runs/trace.json.zst -- python train.py`.",
    },
    Explanation {
        code: "XM0514",
        exit: Exit::Usage,
        title: "Python option that disables the recorder",
        cause: "The options -I, -E and -S keep Python from loading the recorder, which it finds through PYTHONPATH and \
             site.",
        example: "xmem profile -- python -I train.py",
        fix: "Remove the option: `xmem profile -- python train.py`.",
    },
    Explanation {
        code: "XM0515",
        exit: Exit::Usage,
        title: "command that cannot be run",
        cause: "The program behind `--` does not exist or is not executable.",
        example: "xmem profile -- pyhton train.py",
        fix: "Write the command as in a shell: `xmem profile -- python train.py`. `command -v python` shows the path of \
             a program.",
    },
    Explanation {
        code: "XM0516",
        exit: Exit::Unreadable,
        title: "no folder for the recorder",
        cause: "xmem cannot create the private folder through which the recorder and xmem exchange files.",
        example: "TMPDIR=/missing xmem profile -- python train.py",
        fix: "Set TMPDIR to a folder that only you can write to: `TMPDIR=/var/tmp xmem profile -- python train.py`.",
    },
    Explanation {
        code: "XM0517",
        exit: Exit::Unreadable,
        title: "writes that cannot be kept out of your files",
        cause: "What a script writes goes to a private folder, and this folder cannot be set up.",
        example: "TMPDIR=/full xmem profile -- python train.py",
        fix: "Set TMPDIR to a folder with free space, or let the script write to your files with `--let-write all`.",
    },
    Explanation {
        code: "XM0518",
        exit: Exit::Unreadable,
        title: "command without the recorder",
        cause: "The command ended, and no Python process on this machine loaded the recorder.",
        example: "xmem profile -- docker run image python train.py",
        fix: "Run xmem where Python runs, for example inside the container: `docker run image xmem profile -- python \
             train.py`.",
    },
    Explanation {
        code: "XM0519",
        exit: Exit::Unreadable,
        title: "file that hides a module",
        cause: "A file or folder beside the script has the name of a module, and Python imports it instead.",
        example: "xmem profile -- python train.py",
        fix: "Rename the file or folder that the message names, for example with `mv torch.py my_torch.py`.",
    },
    Explanation {
        code: "XM0520",
        exit: Exit::Unreadable,
        title: "export that is not a trace",
        cause: "The script, or a library that it uses, changed files of the recorder.",
        example: "xmem profile -- python train.py",
        fix: "Leave the folder of the variable `XMEM_RECORDER` alone in the script, and record again.",
    },
    Explanation {
        code: "XM0521",
        exit: Exit::Unreadable,
        title: "unreadable export",
        cause: "The trace was written by another user, or was removed before xmem could read it.",
        example: "xmem profile -- sudo python train.py",
        fix: "Run the whole command as one user: `sudo xmem profile -- python train.py`.",
    },
    Explanation {
        code: "XM0522",
        exit: Exit::Unreadable,
        title: "export that stalled",
        cause: "PyTorch started to write the trace and stopped, often because memory ran out.",
        example: "xmem profile -- python train.py",
        fix: "Record less: `xmem profile --steps 1 --no-stacks -- python train.py`.",
    },
    Explanation {
        code: "XM0523",
        exit: Exit::Unreadable,
        title: "command without PyTorch",
        cause: "The command ended without an import of torch.",
        example: "xmem profile -- python --version",
        fix: "Check the environment with `python -c 'import torch'`, and record the script that trains.",
    },
    Explanation {
        code: "XM0524",
        exit: Exit::Unreadable,
        title: "unsupported PyTorch",
        cause: "This release of PyTorch lacks what the recorder needs.",
        example: "xmem profile -- python train.py",
        fix: "Install a newer torch with `pip install --upgrade torch`. The build for the CPU is enough.",
    },
    Explanation {
        code: "XM0525",
        exit: Exit::Unreadable,
        title: "no virtual GPU",
        cause: "The virtual GPU needs Linux on x86-64 with glibc, a build of PyTorch with kernels for the device, a folder \
             for its libraries, and address space without a limit.",
        example: "TMPDIR='/tmp/a b' xmem profile --virtual-gpu a100-40g -- python train.py",
        fix: "Correct what the message names, or record on the CPU: `xmem profile --engine cpu -- python train.py`.",
    },
    Explanation {
        code: "XM0526",
        exit: Exit::Unreadable,
        title: "script that changes its user",
        cause: "The new user cannot write to the private folder of the recorder.",
        example: "sudo xmem profile -- python train.py",
        fix: "Start the whole command as that user: `sudo -u USER xmem profile -- python train.py`.",
    },
    Explanation {
        code: "XM0527",
        exit: Exit::Unreadable,
        title: "no model to record",
        cause: "The command ended before a model ran.",
        example: "xmem profile -- python train.py --help",
        fix: "Give the script the arguments with which it trains: `xmem profile -- python train.py --epochs 1`.",
    },
    Explanation {
        code: "XM0528",
        exit: Exit::Unreadable,
        title: "exception before the first iteration",
        cause: "The script raised an exception before an iteration was complete. Nothing was saved.",
        example: "xmem profile -- python broken.py",
        fix: "Run the script without xmem: `python train.py`. If it fails only under xmem, record on the other engine \
             with `--engine cpu`.",
    },
    Explanation {
        code: "XM0529",
        exit: Exit::Unreadable,
        title: "graph that cannot be exported",
        cause: "torch.export cannot express the model, for example because its control flow depends on values.",
        example: "xmem export -- python train.py",
        fix: "Record the job as it runs: `xmem profile -- python train.py`, then `xmem replay trace.json.zst --device \
             t4-16g`.",
    },
    Explanation {
        code: "XM0530",
        exit: Exit::Unreadable,
        title: "lost recording",
        cause: "The command was killed, or reached a limit, before the recording was saved. SIGKILL often means that \
             memory ran out.",
        example: "xmem profile --timeout 10s -- python train.py",
        fix: "Record less with `xmem profile --steps 1 -- python train.py`, or on the virtual GPU, which needs almost \
             no memory.",
    },
    Explanation {
        code: "XM0531",
        exit: Exit::Unreadable,
        title: "recording that cannot be saved",
        cause: "The process that records could not write the trace.",
        example: "TMPDIR=/full xmem profile -- python train.py",
        fix: "Free some space (`df` shows it), or record less: `xmem profile --steps 1 --no-stacks -- python train.py`.",
    },
    Explanation {
        code: "XM0532",
        exit: Exit::Unreadable,
        title: "output that cannot be written",
        cause: "The folder of `--output` does not exist, is not writable, or is full. The file was not changed.",
        example: "xmem profile -o missing/trace.json.zst -- python train.py",
        fix: "Create the folder with `mkdir`, or name another file with `-o FILE`.",
    },
    Explanation {
        code: "XM0533",
        exit: Exit::CutShort,
        title: "incomplete recording",
        cause: "The script ended, was stopped or put nothing on the GPU before all iterations were recorded. The file has \
             those before.",
        example: "xmem profile --timeout 60s -- python train.py",
        fix: "Remove the cause that the message names and record again: `xmem profile -- python train.py`. `xmem \
             replay` answers with the complete iterations.",
    },
];
