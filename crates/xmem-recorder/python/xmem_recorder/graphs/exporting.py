"""torch.export of a program, with as many dynamic dimensions as it allows."""

import contextlib
import io
import logging
import warnings

from ..cpu import placement
from . import archive, hidden


# Errors of torch.export by which it says that sizes or branches depend on values.
BY_VALUES = (
    "GuardOnDataDependentSymNode",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
)


class Result:
    """What was exported: the program of torch.export, and the dimensions that stayed dynamic."""

    def __init__(self, torch, exported, symbols, reason):
        self.exported = exported
        # The same for an archive. It belongs to the attempt: torch 2.6 cannot write parts of a graph that take a free size.
        self.written = archive.serialize(torch, exported)
        # By the name of a dimension: its size in the iteration.
        self.symbols = symbols
        # Why there are fewer than were tried: the first line of the error.
        self.reason = reason
        # Whether values of this iteration decided about sizes or branches.
        self.by_values = False


def export(watch, program, inputs):
    """Exports a program; raises what torch.export raises for static shapes."""
    torch = watch.torch
    _prepare(watch, program)
    leaves = {name: watch.tape.leaves[number] for name, number in inputs.by_name.items()}
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        with hidden.from_libraries(torch):
            result, reason, failure = _try_symbols(torch, program, leaves)
            if result is None:
                result = _try_values(torch, program, leaves, reason)
        if result is None:
            # Libraries have branches without values for torch.export.
            result, reason, _ = _try_symbols(torch, program, leaves)
        if result is None:
            raise failure
        return result


def _try_symbols(torch, program, leaves):
    """The export with as many free sizes as possible; else None, the first reason and the last error."""
    values = tuple(_like(torch, leaf) for leaf in leaves.values())
    reason = failure = None
    for symbols in _attempts(leaves):
        shapes = _shapes(torch, leaves, symbols)
        try:
            exported = _training_export(torch)(program, values, dynamic_shapes=shapes, strict=False)
            return Result(torch, exported, symbols, reason), reason, None
        except Exception as error:
            reason = reason or first_line(error)
            failure = error
        if _is_by_values(failure):
            break
    return None, reason, failure


def _is_by_values(error):
    """Returns whether torch.export says that it would need values."""
    while error is not None:
        if type(error).__name__ in BY_VALUES:
            return True
        error = error.__cause__ or error.__context__
    return False


def _try_values(torch, program, leaves, reason):
    """The export with the values of the iteration, where sizes or branches depend on them; None if it fails."""
    values = tuple(_like(torch, leaf, with_values=True) for leaf in leaves.values())
    for export_by_values in _exports_by_values(torch):
        for symbols in _attempts(leaves):
            try:
                exported = export_by_values(
                    program,
                    values,
                    dynamic_shapes=_shapes(torch, leaves, symbols),
                    strict=False,
                )
                result = Result(torch, exported, symbols, reason)
            except Exception as error:
                reason = first_line(error)
                continue
            result.by_values = True
            return result
    return None


def _exports_by_values(torch):
    """The functions that export with values: torch's own for drafts (torch/export/_draft_export.py) takes several times as
    long as its core, as it also logs each branch."""
    config = torch._functorch.config
    if hasattr(config, "fake_tensor_propagate_real_tensors"):

        def with_values(*args, **options):
            with config.patch(fake_tensor_propagate_real_tensors=True):
                return _training_export(torch)(*args, **options)

        yield with_values
    if hasattr(torch.export, "draft_export"):
        yield torch.export.draft_export


def _prepare(watch, program):
    """Puts the models into the state in which they were called, and has checkpoints call their functions."""
    watch.is_over = True
    placement.rest()
    watch.torch.nn.Module._call_impl = watch.original_call
    watch.checkpoint = lambda function, args, kwargs: function(*args, **_without_options(kwargs))
    for module, training in list(watch.modes.items()):
        module.training = training
    for parameter in program.parameters():
        parameter.grad = None


def _without_options(kwargs):
    for name in ("preserve_rng_state", "determinism_check", "debug", "early_stop"):
        kwargs.pop(name, None)
    return kwargs


@contextlib.contextmanager
def _quiet():
    """Keeps what torch.export logs and prints about attempts from the script's terminal: whole graphs."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(disabled)


def _training_export(torch):
    """The export that keeps the operators of training: a function of its own before 2.7 (torch/export/__init__.py)."""
    version = tuple(int(part) for part in str(torch.__version__).split(".")[:2])
    return torch.export.export_for_training if version < (2, 7) else torch.export.export


def _like(torch, leaf, with_values=False):
    if with_values and leaf.value is not None:
        return leaf.value
    make = torch.randn if with_values and leaf.dtype.is_floating_point else torch.zeros
    value = make(leaf.dims, dtype=leaf.dtype)
    return value.requires_grad_() if leaf.requires_grad else value


def dynamic_symbols(torch, result, inputs, leaves):
    """By the name of a dynamic dimension: its symbol in the graph, and its size in the iteration."""
    found = {}
    sizes = {}
    for node in result.exported.graph.nodes:
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor):
            sizes[node.name] = node.meta["val"].shape
    for name in inputs.by_name:
        for at, size in enumerate(sizes.get(name, ())):
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                kind = "batch" if at == 0 else "length"
                found.setdefault(kind, {"symbol": str(size.node.expr), "size": leaves[name].dims[at]})
    return found


def count_operators(torch, exported):
    """The number of calls of operators in a program, with those of its parts."""
    graphs = [module.graph for module in exported.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    return sum(node.op == "call_function" for graph in graphs for node in graph.nodes)


def batch_of(leaves):
    """The size of the batch: the most frequent first size of inputs with features, else of all that are not scalars."""
    sizes = [leaf.dims[0] for leaf in leaves.values() if len(leaf.dims) > 1 and leaf.dtype.is_floating_point]
    sizes = sizes or [leaf.dims[0] for leaf in leaves.values() if leaf.dims]
    return max(sizes, key=sizes.count, default=None)


def per_sample(leaf, batch):
    """How often the first size of an input has the batch: once, or several times for numbers such as the words of all samples in
    a row; None if it has nothing to do with it."""
    if not leaf.dims or not batch:
        return None
    if leaf.dims[0] == batch:
        return 1
    is_multiple = len(leaf.dims) == 1 and leaf.dims[0] and leaf.dims[0] % batch == 0
    return leaf.dims[0] // batch if is_multiple and not leaf.dtype.is_floating_point else None


def _length_of(leaves, batch):
    """The length of sequences: the second size of integer inputs, if all have the same."""
    lengths = {
        leaf.dims[1]
        for leaf in leaves.values()
        if len(leaf.dims) == 2 and leaf.dims[0] == batch and not leaf.dtype.is_floating_point
    }
    return lengths.pop() if len(lengths) == 1 else None


def _attempts(leaves):
    batch = batch_of(leaves)
    length = _length_of(leaves, batch)
    if batch is not None and batch > 1:
        if length is not None and length > 1:
            yield {"batch": batch, "length": length}
        yield {"batch": batch}
    yield {}


def _shapes(torch, leaves, symbols):
    if not symbols:
        return None
    dims = {name: torch.export.Dim(name) for name in symbols}
    shapes = []
    for leaf in leaves.values():
        shape = {}
        times = per_sample(leaf, symbols["batch"])
        if times is not None:
            shape[0] = dims["batch"] if times == 1 else times * dims["batch"]
            if len(leaf.dims) == 2 and not leaf.dtype.is_floating_point and leaf.dims[1] == symbols.get("length"):
                shape[1] = dims["length"]
        shapes.append(shape or None)
    return tuple(shapes)


def first_line(error):
    """The type and the first line of an error; of one about a node, which is written with all of its inputs, the last: its
    cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and any("Original exception" in line for line in lines):
        lines = lines[-1:]
    text = lines[0].partition(" For more information")[0] if lines else ""
    return f"{type(error).__name__}: {text}"
