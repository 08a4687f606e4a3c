"""What kernels write that do not run: those in Triton, and operators of other libraries. Values that were known there are
not, and the host reads zeros."""

import contextlib
import functools
import re

from .. import imports, session
from . import known, library

# Kernels and operators whose written arguments are kept.
MAX_KERNELS = 1024
# In the text of Triton's IR: a value, and the operations that write to where their first value points.
VALUE = re.compile(r"%[\w$.-]+")
WRITES = ("tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_store", "tt.experimental_descriptor_store")
POINTERS = ("!tt.ptr<", "!tt.tensordesc<")

_kernels = {}
# What writes values into the result of an operator, by its name: a function of the result and the arguments.
_followed = {}


def install():
    """Watches Triton's import."""
    imports.watch("triton.runtime.jit", _triton_imported)


def follow(name, write):
    """Has a function write values into the result of an operator; it returns whether it did."""
    _followed[name] = write


def types_of_operators(torch):
    """The types of operators that a script calls by their names (`torch.ops`)."""
    return torch._ops.OpOverload, torch._ops.OpOverloadPacket


def by_operator(call, func, args, kwargs):
    """Calls an operator that has a name; returns its result, whether its values were written, and its name if it read
    memory that no kernel has written."""
    name = getattr(func, "_qualified_op_name", None) or str(func).replace(".", "::", 1)
    if name.partition("::")[0] in ("aten", "prims", "prim"):
        return call(), False, None
    before = library.host_reads()
    result = call()
    # The script has its result, whatever the operator is.
    with contextlib.suppress(Exception):
        for at, argument in _arguments_written(func):
            forget(args[at] if at < len(args) else kwargs.get(argument))
    write = _followed.get(name.partition(".")[0])
    has_written = False
    if write is not None:
        with contextlib.suppress(Exception):
            has_written = known.unrecorded(write, result, *args)
    return result, has_written, str(func) if library.host_reads() != before else None


@functools.lru_cache(maxsize=MAX_KERNELS)
def _arguments_written(func):
    """The places and names of arguments that an operator, or one of its overloads, writes to."""
    schemas = [func._schema] if hasattr(func, "_schema") else [getattr(func, name)._schema for name in func.overloads()]
    return {
        (at, argument.name)
        for schema in schemas
        for at, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    }


def forget(value):
    """Forgets the values of a tensor on a GPU, or of those in lists."""
    if isinstance(value, (list, tuple)):
        for one in value:
            forget(one)
    elif hasattr(value, "is_cuda") and value.is_cuda:
        known.clear(value)


def _triton_imported(module):
    kind = getattr(module, "JITFunction", None)
    original = getattr(kind, "run", None)
    if original is None:
        return

    def run(self, *args, **kwargs):
        kernel = original(self, *args, **kwargs)
        try:
            _launched(self, args, kwargs, kernel)
        except Exception as error:
            session.note(f"values that a Triton kernel writes are not forgotten: {type(error).__name__}: {error}")
        return kernel

    kind.run = run


def _launched(function, args, kwargs, kernel):
    """Forgets the values of what a kernel writes."""
    if kwargs.get("warmup"):
        return
    given = dict(zip(function.arg_names, args))
    given.update((name, kwargs[name]) for name in function.arg_names if name in kwargs)
    tensors = [given[name] for name in function.arg_names if hasattr(given.get(name), "is_cuda")]
    if not any(tensor.is_cuda and known.state(tensor) > known.SMALL for tensor in tensors):
        return
    places = _written(kernel, len(tensors))
    for at, tensor in enumerate(tensors):
        if (places is None or at in places) and tensor.is_cuda:
            known.clear(tensor)


def _written(kernel, count):
    """The places of written tensors among those that a kernel is given; None if they are not known."""
    text = getattr(kernel, "asm", {}).get("ttir")
    if not isinstance(text, str):
        return None
    if text not in _kernels:
        if len(_kernels) >= MAX_KERNELS:
            _kernels.clear()
        _kernels[text] = written_pointers(text)
    pointers, places = _kernels[text]
    return places if pointers == count else None


def written_pointers(text):
    """The number of pointers among the arguments of a kernel, and the places of those through which it writes (None if they
    are not known), by the text of its IR in Triton's dialect (`tt`)."""
    roots, places, pointers = {}, set(), 0
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("tt.func"):
            if pointers:
                # A function that the kernel calls.
                return pointers, None
            for argument in re.split(r", (?=%)", line[line.index("(") + 1 :]):
                name, _, kind = argument.partition(": ")
                if kind.startswith(POINTERS):
                    roots[name] = {pointers}
                    pointers += 1
            continue
        results, _, operation = line.partition(" = ") if line.startswith("%") else ("", "", line)
        if operation.startswith("scf."):
            for name, value in re.findall(r"(%[\w$.-]+) = (%[\w$.-]+)", operation):
                roots[name] = roots.get(value, set())
        written = operation.strip('"').startswith(WRITES)
        operands = VALUE.findall(operation.partition(" loc(")[0])
        if written:
            found = roots.get(operands[0]) if operands else None
            if not found:
                return pointers, None
            places |= found
        if results and not operation.startswith(("tt.load", "tt.atomic", "arith.cmp")):
            of_operands = set().union(*(roots.get(value, set()) for value in operands))
            for name in VALUE.findall(results):
                roots[name] = of_operands
    return pointers, places
