"""The state of Adam is stored in 8 bits per element instead of 32.

Steps take about the same time.
"""

import importlib

from .common import default_of, replace_adam

NAME = "adam8bit"
TITLE = "Adam with 8-bit state"
CHANGES = "training"
NEEDS = "bitsandbytes"
OPTION = ""
EXCLUDES = "host-optimizer"
CODE = "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=lr)"


def install(torch, option, report):
    """Makes Adam and AdamW objects of the classes of bitsandbytes."""

    def construct_8bit(optimizer, kind, arguments):
        try:
            module = importlib.import_module("bitsandbytes.optim")
        except ImportError:
            raise ImportError("bitsandbytes is not installed") from None
        if arguments.get("amsgrad") or arguments.get("maximize"):
            raise ValueError("bitsandbytes supports neither amsgrad nor maximize")
        names = ("lr", "betas", "eps", "weight_decay")
        options = {name: arguments.get(name, default_of(kind, name)) for name in names}
        optimizer.__class__ = kind_8bit = getattr(module, kind.__name__ + "8bit")
        kind_8bit.__init__(optimizer, arguments["params"], **options)
        return kind_8bit.__name__

    replace_adam(torch, construct_8bit, report)
