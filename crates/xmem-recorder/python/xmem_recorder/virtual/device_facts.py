"""The metadata of a recording on a virtual GPU: the device, its memory, and the limits of the answer."""

import contextlib

from .. import errors, session
from . import activity, assumptions, compilation, history, host_memory, library, outside, peaks, values


def collect(torch):
    """What the metadata says about the device and its memory, in bytes. Adds notes."""
    with contextlib.suppress(Exception):
        peaks.read(torch)
    outside.measure(torch)
    _note_limits(library.log())
    return {
        "device": session.settings()["device"]["key"],
        "peaks": peaks.of_fullest(),
        "outside": outside.fact(),
        "compiles": compilation.began(),
        "pinned": peaks.of_host(torch),
        **limits(),
        "other_peaks": session.settings().get("other_peaks"),
        "run_ahead_peaks": session.settings().get("run_ahead_peaks"),
        "skipped_initializations": host_memory.skipped(),
    }


def limits():
    """What was not known up to now: values that were read, sizes that were assumed, and what the libraries could not do."""
    return {
        "reads": values.facts(),
        "assumed": assumptions.facts(),
        "log": [{"kind": kind, "text": text} for kind, text in library.log()],
    }


def allocator_history():
    """The history of the allocator, for the metadata; None if there is none."""
    try:
        records = activity.of_the_allocator()
        found = history.facts(records)
        return None if found is None else {**found, "activity": activity.facts()}
    except Exception as error:
        session.note(f"the trace lacks the history of the allocator: {errors.describe(error)}")
        return None


def _note_limits(log):
    """Tells the user what the virtual GPU could not do."""
    texts = {}
    for kind, text in log:
        texts.setdefault(kind, []).append(text)
    for text in texts.get("cudnn", []):
        session.note(f"cuDNN: {text}")
    if "size" in texts:
        session.note(f"workspaces that are not known without a GPU count as empty: {', '.join(texts['size'])}")
    if "estimate" in texts:
        session.note(f"workspaces that are estimated without a GPU: {', '.join(texts['estimate'])}")
    if "call" in texts:
        calls = [text.split(" ")[0] for text in texts["call"]]
        session.note(f"unsupported CUDA calls: {', '.join(calls)}")
