"""Adafactor in place of Adam: the state of a matrix is a row and a column instead of two matrices.

Steps take about the same time. The learning rate means something else, so it should be tuned.
"""

from .common import default_of, replace_adam

NAME = "adafactor"
TITLE = "Adafactor instead of Adam"
CHANGES = "training"
NEEDS = ""
OPTION = ""
EXCLUDES = "adam8bit host-optimizer"
CODE = "optimizer = torch.optim.Adafactor(model.parameters(), lr=lr)"


def install(torch, option, report):
    """Makes Adam and AdamW objects of `torch.optim.Adafactor`, with their learning rate and weight decay."""
    kind_of_adafactor = getattr(torch.optim, "Adafactor", None)
    if kind_of_adafactor is None:
        return report(0, "this release of PyTorch has no Adafactor")

    def construct_adafactor(optimizer, kind, arguments):
        options = {name: arguments.get(name, default_of(kind, name)) for name in ("lr", "weight_decay")}
        optimizer.__class__ = kind_of_adafactor
        kind_of_adafactor.__init__(optimizer, arguments["params"], **options)
        for group in optimizer.param_groups:
            # Adam's is a number, Adafactor's a pair.
            group["eps"] = optimizer.defaults["eps"]
        return "Adafactor"

    replace_adam(torch, construct_adafactor, report)
