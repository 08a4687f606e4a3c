"""xmem predicts the GPU memory of PyTorch training jobs, without a GPU.

This package runs the program `xmem`, which is installed with it, and needs no other package. Figures and names are
those of the program's JSON; all sizes are bytes.

- `replay` answers for a recording on a device, `replays` for several.
- `record` records a script, a command or a function without a GPU; `recording` records a `with` block.
- `fits` answers yes or no, with the numbers: for a recording, a script, or a model in hand.
- `xmem.transformers.MemoryCallback` and `xmem.lightning.MemoryCallback` predict at the start of a training.
- `planned` marks the iterations of a script that is run with a static memory plan.
- `%load_ext xmem` adds the cell magic `%%xmem` to notebooks, and `@pytest.mark.gpu_memory` is for tests.

>>> import xmem
>>> xmem.replay("traces/mlp_adam/trace.json.zst", device="rtx3060-12g").peak_reserved_bytes
262144000
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ._errors import (
    IncompleteRecordingWarning,
    InputError,
    ModelError,
    NotFittingError,
    NotFittingWarning,
    RecordingError,
    UsageError,
    XmemError,
)
from ._fits import Fits, fits
from ._live import recording
from ._planned import planned
from ._record import Recording, record
from ._replay import Replay, devices, replay, replays
from ._table import Table

try:
    __version__ = version("xmem-gpu")
    """The version of the package and of its program."""
except PackageNotFoundError:
    # Used from the sources.
    __version__ = "0"

__all__ = [
    "Fits",
    "IncompleteRecordingWarning",
    "InputError",
    "ModelError",
    "NotFittingError",
    "NotFittingWarning",
    "Recording",
    "RecordingError",
    "Replay",
    "Table",
    "UsageError",
    "XmemError",
    "devices",
    "fits",
    "planned",
    "record",
    "recording",
    "replay",
    "replays",
]

for _name in __all__:
    # Errors and help name what is imported.
    globals()[_name].__module__ = __name__


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic `%%xmem` (`%load_ext xmem`)."""
    from ._magic import register

    register(shell)
