"""Models and pipelines of diffusers without weights: what the drivers of such scripts share."""

import torch


def empty(build, dtype):
    """A model on the host whose weights are not set, which takes no memory there."""
    with torch.device("meta"):
        model = build()
    return model.to(dtype).to_empty(device="cpu").eval()


def register(self, **modules):
    """Takes the place of `register_modules`, which checks the types of what a pipeline is made of."""
    for name, module in modules.items():
        self.register_to_config(**{name: (None, None)})
        setattr(self, name, module)
