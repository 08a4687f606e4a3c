"""Records a few iterations of a training script written for CUDA, on the CPU.

The parts:

- `session`: what `xmem profile` wants, and how it is told what happens;
- `imports`: waits for the script to import torch;
- `redirect` and the modules named in it: CUDA's interface, answered by the CPU;
- `placement`: which tensors would be on the GPU, and the marks that say so in the trace;
- `recorder`: runs torch's profiler, counts iterations, saves the trace, ends the script;
- `facts`: what the trace does not say by itself, as its metadata.

Works with torch 2.0 and later, and needs nothing else. Every wrapper keeps the signature, the
results and the errors of what it wraps wherever no CUDA device is meant.
"""

import os

from . import session


def start(folder):
    """Prepares this process; `folder` is what `xmem profile` and the recorder share."""
    session.open_session(folder)
    # Kineto reports on standard error that there is no GPU.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    from . import imports

    imports.when_imported("torch", _torch_is_there)


def _torch_is_there(torch):
    version = str(torch.__version__)
    if int(version.split(".")[0]) < 2:
        text = f"torch {version} is too old: the recorder needs 2.0 or later"
        session.tell("unsupported", text=text)
        return
    from . import recorder, redirect

    try:
        redirect.install(torch)
        recorder.install(torch)
    except Exception as error:
        text = f"torch {version} could not be redirected: {type(error).__name__}: {error}"
        session.tell("unsupported", text=text)
        return
    session.tell("torch", version=version)
