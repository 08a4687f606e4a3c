"""The calls of models, and the functions between them and the loss, as they ran.

Tensors are numbered, and referred to weakly: the tape keeps none alive, so that what the script keeps can be told.
"""

import os
import sys
import weakref

from . import structures

# Bytes of the largest tensor whose values are kept, for an export that needs them.
MAX_KEPT = 16 << 20
# Entries from which on those without gradients are dropped: an evaluation before the training.
MAX_ENTRIES = 200_000
# Functions whose results have the memory of their input: what they make of a batch stays part of the graph, so that its sizes
# follow from those of the batch.
VIEWS = frozenset(
    """__getitem__ chunk expand expand_as flatten movedim narrow permute reshape select split squeeze swapaxes t
    transpose unbind unflatten unsqueeze view view_as""".split()
)
_HERE = os.path.dirname(os.path.abspath(__file__))


class Ref:
    """The place of a tensor in arguments: its number."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


class Leaf:
    """A tensor that no entry made: what is needed to make one like it."""

    def __init__(self, tensor):
        self.dims = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self.requires_grad = tensor.requires_grad
        # The name of the argument that it was first given as.
        self.name = None
        # Set where it is a parameter or buffer: the tensor itself, which its model keeps.
        self.parameter = None
        # A copy of integers, unless it is large: sizes and branches may depend on them.
        self.value = None
        if (
            not tensor.dtype.is_floating_point
            and not tensor.dtype.is_complex
            and tensor.numel() * tensor.element_size() <= MAX_KEPT
        ):
            self.value = tensor.detach().clone()


class Entry:
    """A call: of a module if `module` is set, else of a function."""

    def __init__(self, function):
        self.function, self.args, self.kwargs = function, (), {}
        self.module = None
        self.inputs = []
        # Numbers of the tensors of the result, in their order; those that the call changed in place.
        self.outputs = []
        self.changed = []
        self.autocast = None
        self.with_gradients = True
        # The script's file and line.
        self.place = None


class Tape:
    """The entries since the last step, and the numbers of the tensors in them."""

    def __init__(self, torch):
        self.torch = torch
        self.known = {}
        self.count = 0
        # True within a checkpoint, whose results have gradients.
        self.has_gradients = False
        self.clear()

    def clear(self):
        """Forgets the entries."""
        self.entries = []
        self.leaves = {}
        # Numbers of tensors that models made, or what was made of these; the others belong to the batch.
        self.derived = set()
        # Numbers of tensors that views of the batch made. Those that a model is called with are inputs all the same.
        self.views = set()
        self.known.clear()

    def number_of(self, tensor):
        """The number of a tensor if it has one."""
        found = self.known.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def alive(self, numbers):
        """Those of these tensors that still exist."""
        wanted = set(numbers)
        return [
            number for reference, number in list(self.known.values()) if number in wanted and reference() is not None
        ]

    def _give(self, tensor):
        self.count += 1
        key, number = id(tensor), self.count

        def forget(_reference, key=key, number=number):
            found = self.known.get(key)
            if found is not None and found[1] == number:
                del self.known[key]

        self.known[key] = (weakref.ref(tensor, forget), number)
        return number

    def _read(self, tensor, entry, name=None):
        number = self.number_of(tensor)
        is_view = number in self.views and entry.module is not None
        if number is None or is_view and number not in self.leaves:
            number = self._give(tensor) if number is None else number
            leaf = self.leaves[number] = Leaf(tensor)
            if isinstance(tensor, self.torch.nn.Parameter) or tensor.requires_grad and tensor.is_leaf:
                leaf.parameter = tensor
        if number in self.leaves and name and self.leaves[number].name is None:
            self.leaves[number].name = name
        entry.inputs.append(number)
        return Ref(number)

    def begin(self, call, args, kwargs, names=()):
        """An entry for a call, of a function or a module, that is about to run; `names` are those of its positional
        arguments."""
        entry = Entry(call)
        if isinstance(call, self.torch.nn.Module):
            entry.module, entry.function = call, None
        read = []
        for index, value in enumerate(args):
            name = names[index] if index < len(names) else None
            read.append(self._change(value, entry, name))
        entry.args = tuple(read)
        entry.kwargs = {key: self._change(value, entry, key) for key, value in kwargs.items()}
        entry.autocast = autocast_state(self.torch)
        entry.with_gradients = self.has_gradients or self.torch.is_grad_enabled()
        return entry

    def _change(self, value, entry, name):
        if type(value) is dict:
            named = {key: key if isinstance(key, str) else name for key in value}
            return {key: self._change(part, entry, named[key]) for key, part in value.items()}
        return structures.change(self.torch, value, lambda tensor: self._read(tensor, entry, name))

    def end(self, entry, result):
        """Adds the entry of a call that has returned, if it made or changed tensors."""
        outputs = structures.tensors(self.torch, result)
        if not outputs and not entry.changed:
            return False
        read = set(entry.inputs)
        is_derived = self._is_derived(entry)
        if not is_derived and not (read and getattr(entry.function, "__name__", "") in VIEWS):
            return False
        for tensor in outputs:
            number = self.number_of(tensor)
            if number is None:
                number = self._give(tensor)
            elif number in read and entry.module is None:
                entry.changed.append(number)
            entry.outputs.append(number)
        if not is_derived:
            self.views.update(entry.outputs)
        else:
            self.derived.update(entry.outputs, entry.changed)
        self.entries.append(entry)
        if len(self.entries) > MAX_ENTRIES:
            self.entries = [old for old in self.entries if old.with_gradients]
        return True

    def _is_derived(self, entry):
        """Returns whether a call has to do with a model: others prepare the batch, and their results are inputs."""
        if entry.module is not None and next(entry.module.parameters(), None) is not None:
            return True
        if not self.derived.isdisjoint(entry.inputs):
            return True
        leaves = (self.leaves.get(number) for number in entry.inputs)
        return any(leaf is not None and leaf.requires_grad for leaf in leaves)

    def slice(self, numbers):
        """The entries that lead to these tensors, in their order."""
        needed, kept = set(numbers), []
        for entry in reversed(self.entries):
            if needed.isdisjoint(entry.outputs) and needed.isdisjoint(entry.changed):
                continue
            kept.append(entry)
            needed.update(number for number in entry.inputs if number not in self.leaves)
        kept.reverse()
        return kept


def autocast_state(torch):
    """The dtype and cache of autocast on this thread; None where it is off."""
    if not torch.is_autocast_cpu_enabled():
        return None
    return torch.get_autocast_cpu_dtype(), torch.is_autocast_cache_enabled()


def place_of_caller():
    """The file and line of the innermost frame that is neither torch's nor a package's."""
    frame, first = sys._getframe(1), None
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_HERE, "<", "torch/xmem_recorder")):
            first = first or (os.path.basename(name), frame.f_lineno)
            if "/site-packages/" not in name and "/dist-packages/" not in name and "/lib/python" not in name:
                return os.path.basename(name), frame.f_lineno
        frame = frame.f_back
    return first
