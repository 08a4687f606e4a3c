"""Hides from libraries that a graph is taken: they have other branches then, above all for masks of attention, which the job
does not take."""

import contextlib
import sys

from ..patching import calling_module

# Functions of `torch.compiler` by which libraries ask.
QUESTIONS = ("is_exporting", "is_compiling", "is_dynamo_compiling")
# Functions of libraries that ask a tensor: the module, and the name there.
OF_TENSORS = (("transformers.utils.import_utils", "is_fake_tensor"),)


@contextlib.contextmanager
def from_libraries(torch):
    """Answers as without torch.export, outside torch."""
    replaced = []

    def replace(owner, name, function):
        replaced.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)

    for name in QUESTIONS:
        if hasattr(torch.compiler, name):
            replace(torch.compiler, name, _for_torch_only(getattr(torch.compiler, name)))
    for module, name in OF_TENSORS:
        if hasattr(sys.modules.get(module), name):
            replace(sys.modules[module], name, lambda _tensor: False)
    try:
        yield
    finally:
        for owner, name, original in replaced:
            setattr(owner, name, original)


def _for_torch_only(original):
    def question():
        module = calling_module()
        return original() if module == "torch" or module.startswith("torch.") else False

    return question
