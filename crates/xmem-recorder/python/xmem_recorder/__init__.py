"""Records a few iterations of a training script written for CUDA, on the CPU or on a virtual GPU.

The packages, of which each says what it leaves to others:

- `recording`: the begin, the iterations and the end of the recording;
- `facts`: what is noted about a run, for the metadata of its trace;
- `cpu`: CUDA's interface, implemented by the CPU;
- `virtual`: the virtual GPU;
- `ranks`: one process of a distributed job, without the others;
- `weights`: files of weights that a script loads;
- `graphs`: the graph of an iteration, as torch.export writes it;
- `measures`: what lowers the memory of a job, without a change to its script;
- `planned`: the allocators that follow a static memory plan;
- `isolation`: what keeps the files of the user and other machines untouched.

The modules that all of them use:

- `session`: the settings from `xmem profile`, and the messages to it;
- `engine`: the choice of the CPU or a virtual GPU;
- `profilers`: torch's profiler, and those of the script;
- `imports`, `patching`: callbacks for the import of modules, and wrappers of functions;
- `compiler`: the import of torch's compiler, which few scripts need;
- `own_iterations`: the iterations that a script marks itself;
- `scaling`: the update of a scaler of gradients;
- `stacks`: what the profiler's Python stacks leave out;
- `errors`: what is told of an exception;
- `shadows`, `users`: files of the user's that hide torch, and a script that becomes another user.

Modules are imported at the top of a file, but for torch, and for what a process without torch, or most recordings, do
without.

Needs torch 2.0 or later and no other package. Every wrapper keeps the signature, the results and the
errors of the wrapped function wherever no CUDA device is meant.
"""

import contextlib
import importlib.util
import os

from . import compiler, engine, errors, imports, session, shadows, users
from .isolation import hubs, network, raw_calls, trackers, writes
from .ranks import launchers
from .weights import mapping, pretrained

# Packages that load CUDA's libraries and then import torch.
BEFORE_TORCH = ("transformer_engine",)


def start(folder):
    """Prepares this process; `folder` is shared with `xmem profile`."""
    session.open_session(folder)
    if session.purpose() == session.RUN_ON_DEVICE:
        imports.watch("torch", _change)
        return
    # Keeps Kineto from reporting on standard error that it found no GPU.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    users.watch()
    writes.start()
    raw_calls.start()
    network.start()
    trackers.start()
    hubs.start()
    launchers.start()
    mapping.watch()
    pretrained.watch()
    compiler.defer()
    imports.when_imported("torch", _torch_found, _torch_imported, shadows.torch_failed)
    for name in BEFORE_TORCH:
        imports.when_imported(name, _library_found, lambda _module: None, lambda _error: None)


def _library_found(_spec):
    """Finds torch before a package that loads CUDA's libraries: those that are loaded first stay."""
    with contextlib.suppress(ImportError, ValueError):
        importlib.util.find_spec("torch")


def _torch_found(spec):
    shadows.torch_found(spec)
    engine.choose(spec)


def _torch_imported(torch):
    if not shadows.is_pytorch(torch):
        return
    shadows.torch_imported(torch)
    version = str(torch.__version__)
    if int(version.split(".")[0]) < 2:
        text = f"torch {version} is not supported: the recorder needs 2.0 or later"
        session.send("unsupported", text=text)
        return
    if engine.error() is not None:
        session.send("no_virtual_gpu", text=engine.error(), no_kernels=engine.has_no_kernels())
        return
    try:
        _install(torch)
    except Exception as error:
        where = "to a virtual GPU" if engine.is_virtual() else "to the CPU"
        text = f"torch {version} cannot be redirected {where}: {type(error).__name__}: {error}"
        session.send("unsupported", text=text)
        return
    session.send("torch", version=version, engine=engine.chosen())


def _install(torch):
    if engine.is_virtual():
        from .virtual import gpu

        gpu.install(torch)
    else:
        from .cpu import redirect

        redirect.install(torch)
    if session.purpose() == session.RECORD:
        from .recording import watch

        watch.install(torch)
    elif session.purpose() == session.EXPORT_GRAPH:
        from .graphs import end

        end.install(torch)
    _change(torch)


def _change(torch):
    """Changes what the user wants changed: the allocator, and what the measures that lower the job's memory do. These come
    around what is watched: a step that one of them makes counts as one of the script's."""
    if session.settings().get("plan"):
        from . import planned

        planned.install(torch)
    wanted = session.settings().get("measures")
    if not wanted:
        return
    from . import measures

    for name, option in sorted(wanted, key=lambda measure: measures.NAMES.index(measure[0])):
        try:
            measures.install(torch, [f"{name}={option}" if option else name], session.report_measure)
        except Exception as error:
            session.report_measure(name, 0, f"it cannot be installed: {errors.describe(error)}")
