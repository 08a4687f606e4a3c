"""Takes the graph of the iteration that was seen."""

from .. import errors
from . import archive, exporting, job, program

# The oldest release of torch whose export keeps the operators of training.
OLDEST = (2, 6)
# Longest list of names, and longest text, in a message.
MAX_NAMES = 20
MAX_TEXT = 400


def take(watch, path, name):
    """Exports the iteration and writes the archive; returns the description of the job."""
    watch.is_over = True
    tape, state = watch.tape, watch.course
    if not state.backwards:
        raise program.NotOnTape("no loss of a model was seen")
    groups = [[number for number in numbers if number is not None] for numbers, _ in state.backwards]
    if not all(groups):
        raise program.NotOnTape("the loss was made in a way that was not seen")
    slices = [tape.slice(numbers) for numbers in groups]
    accumulation = 1
    if len(groups) > 1 and len({_signature(tape, entries) for entries in slices}) == 1 and _are_apart(slices):
        accumulation, groups, slices = len(groups), groups[:1], slices[:1]
        if any(details.get("closure") for _, details in state.events):
            # The passes follow each other within the step.
            accumulation = 1
    numbers = [number for group in groups for number in group]
    entries = tape.slice(numbers)
    made, inputs = program.build(watch, entries, numbers)
    result = exporting.export(watch, made, inputs)
    losses = [{"outputs": len(group)} for group in groups]
    description = job.describe(watch, made, inputs, result, accumulation, losses)
    archive.write(path, name, result.written, description)
    description["operators"] = exporting.count_operators(watch.torch, result.exported)
    description["parameters"] = sum(parameter.numel() for parameter in made.parameters())
    return description


def _signature(tape, entries):
    """What two passes have in common that compute the same with other data."""
    parts = []
    for entry in entries:
        name = getattr(entry.function, "__name__", None) if entry.module is None else id(entry.module)
        read = [tape.leaves[number] for number in entry.inputs if number in tape.leaves]
        parts.append((name, tuple((leaf.dims, leaf.dtype) for leaf in read), len(entry.outputs)))
    return tuple(parts)


def _are_apart(slices):
    """Returns whether no pass uses what another one made."""
    seen = set()
    for entries in slices:
        if not seen.isdisjoint(id(entry) for entry in entries):
            return False
        seen.update(id(entry) for entry in entries)
    return True


def facts(description):
    """What is told about a graph."""
    return {
        "operators": description.pop("operators"),
        "parameters": description.pop("parameters"),
        "inputs": [given["name"] for given in description["inputs"]][:MAX_NAMES],
        "dynamic": list(description["dynamic"]),
        "fixed": description["static_because"],
    }


def reason(error):
    """Why there is no graph: what torch.export says, and the line of the script."""
    text = str(error) if isinstance(error, program.NotOnTape) else f"torch.export: {exporting.first_line(error)}"
    place = getattr(error, "place_in_script", None)
    if place is None and not isinstance(error, program.NotOnTape):
        place = errors.place_of(error.__traceback__)
    return f"{text[:MAX_TEXT]} (at {place})" if place else text[:MAX_TEXT]
