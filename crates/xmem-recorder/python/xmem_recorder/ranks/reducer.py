"""Gradients of `DistributedDataParallel` in a process that runs without the others of its job.

DDP's reducer takes the reduced gradients from the future of a collective (torch/csrc/distributed/c10d/reducer.cpp,
`finalize_backward`). Those of PyTorch's fake process group hold none (FakeProcessGroup.hpp, `FakeWork::getFuture`), so
that the reducer gets a communication hook, which a script may bring itself.
"""

import functools

_torch = None


def install(torch):
    """Gives DDP a hook where its process group is PyTorch's fake one, before the first forward pass: until then the
    script may register its own, and only one can be registered."""
    global _torch
    _torch = torch
    kind = torch.nn.parallel.DistributedDataParallel
    # `replicate` calls the first part of the forward pass alone (torch/distributed/_composable/replicate.py).
    name = "_pre_forward" if hasattr(kind, "_pre_forward") else "forward"
    original = getattr(kind, name)

    @functools.wraps(original)
    def forward(self, *args, **kwargs):
        if not getattr(self, "_comm_hooks", True) and _is_alone(self.process_group, self.device):
            _torch.distributed._register_comm_hook(self.reducer, self.process_group, _mean)
            self._comm_hooks.append((_mean, self.process_group))
        return original(self, *args, **kwargs)

    setattr(kind, name, forward)


def _is_alone(group, device):
    """Returns whether the backend of a group for a device is the fake one."""
    try:
        return group._get_backend(device).name() == "fake"
    except RuntimeError:
        return False


def _mean(_group, bucket):
    """The mean of equal gradients."""
    return _ready(bucket.buffer())


class Work:
    """Work of the fake process group, with a result."""

    def __init__(self, work, result):
        self._work = work
        self._result = result

    def __getattr__(self, name):
        return getattr(self._work, name)

    def get_future(self):
        """A future that holds the result; that of the fake process group holds none."""
        return _ready([self._result])


def _ready(value):
    """A future that holds a value."""
    future = _torch.futures.Future()
    future.set_result(value)
    return future
