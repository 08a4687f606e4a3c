"""The branch of the script that raises no exception, where it tests a value that is not known.

Checks of arguments (`if not valid.all(): raise ValueError`, `assert mask.any()`) hold in a job that works on a GPU.
"""

import bisect
import dis

# Instructions up to the exception that a branch raises.
MAX_INSTRUCTIONS = 80
# Codes of which the instructions are kept.
MAX_CODES = 256
# Frames through which a value is returned to the one that tests it.
MAX_CALLERS = 4
# Instructions between a value and its test.
PASSED = ("NOP", "NOT_TAKEN", "TO_BOOL", "UNARY_NOT")
# Instructions that load what a value is compared with, and their greatest number.
OPERANDS = ("LOAD_", "PUSH_NULL", "UNARY_", "BINARY_")
MAX_OPERANDS = 8
# Parts of the names of instructions with which a branch goes elsewhere.
ELSEWHERE = ("JUMP", "RETURN", "FOR_ITER", "YIELD", "SEND", "END_")

# Parts of the names of instructions that make arguments of a call from a value, and their greatest number.
ARGUMENTS = ("LOAD_", "PUSH_NULL", "BINARY_", "BUILD_", "CALL", "CONVERT_", "FORMAT_", "KW_NAMES", "PRECALL")
MAX_ARGUMENTS = 200

_instructions = {}


def decides(frame):
    """Returns whether the script branches on a comparison of the number that it gets from the call in a frame, and neither
    branch raises an exception (`if loss.item() > 0:`)."""
    found = _behind_call(frame)
    if found is None:
        return False
    instructions, places, at = found
    # What it is compared with.
    end = at + MAX_OPERANDS
    while at < min(end, len(instructions)) and instructions[at].opname.startswith(OPERANDS):
        at += 1
    return _branches_on_comparison(instructions, places, at)


def decides_by_comparison(frame):
    """The same, for the comparison that a frame is about to make."""
    instructions, places, offsets = _of_code(frame.f_code)
    return _branches_on_comparison(instructions, places, bisect.bisect_right(offsets, frame.f_lasti) - 1)


def _branches_on_comparison(instructions, places, at):
    if not 0 <= at < len(instructions) or instructions[at].opname != "COMPARE_OP":
        return False
    at += 1
    while at < len(instructions) and instructions[at].opname in PASSED:
        at += 1
    if at >= len(instructions) or not instructions[at].opname.startswith("POP_JUMP"):
        return False
    return _raises(instructions, places.get(instructions[at].argval)) == _raises(instructions, at + 1)


def truth_without_exception(frame):
    """What a test that a frame is about to make must give for the branch that raises nothing; None if both do, or neither.
    The test may also be that of a caller, to which the frame returns the value."""
    is_negated = False
    for _ in range(MAX_CALLERS):
        found = _behind_call(frame)
        if found is None:
            return None
        instructions, places, at = found
        while at < len(instructions) and instructions[at].opname in PASSED:
            is_negated ^= instructions[at].opname == "UNARY_NOT"
            at += 1
        if at >= len(instructions) or instructions[at].opname != "RETURN_VALUE":
            break
        frame = frame.f_back
    else:
        return None
    if at >= len(instructions):
        return None
    name = instructions[at].opname
    if not name.startswith("POP_JUMP") or not name.endswith(("_IF_TRUE", "_IF_FALSE")):
        return None
    jumps_if = name.endswith("_IF_TRUE")
    jump_raises = _raises(instructions, places.get(instructions[at].argval))
    next_raises = _raises(instructions, at + 1)
    if jump_raises == next_raises:
        return None
    return (jumps_if if next_raises else not jumps_if) ^ is_negated


def is_printed(frame):
    """Returns whether what the script gets from the call in a frame only becomes part of what it prints."""
    found = _behind_call(frame)
    if found is None:
        return False
    instructions, _, at = found
    first = at
    while first > 0 and instructions[first - 1].opname.startswith(ARGUMENTS) and at - first < MAX_ARGUMENTS:
        first -= 1
    names = [one.argval for one in instructions[first : first + 2] if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    if not names or names[0] != "print":
        return False
    end = at
    while end < len(instructions) and instructions[end].opname.startswith(ARGUMENTS) and end - at < MAX_ARGUMENTS:
        end += 1
    return end < len(instructions) and instructions[end].opname == "POP_TOP"


def _behind_call(frame):
    """The instructions of a frame, their places by their offsets, and the place of the one behind the call that runs; None if
    that is not known."""
    if frame is None:
        return None
    instructions, places, offsets = _of_code(frame.f_code)
    # Behind a call it is that of the cache of the instruction.
    at = bisect.bisect_right(offsets, frame.f_lasti) - 1
    if at < 0:
        return None
    while at < len(instructions) and instructions[at].opname.startswith(("CALL", "PRECALL")):
        at += 1
    return instructions, places, at


def _of_code(code):
    """The instructions of a code, their places by their offsets, and the offsets."""
    known = _instructions.get(code)
    if known is None:
        if len(_instructions) >= MAX_CODES:
            _instructions.clear()
        found = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "EXTENDED_ARG")]
        places = {one.offset: at for at, one in enumerate(found)}
        known = _instructions[code] = found, places, list(places)
    return known


def _raises(instructions, at):
    """Returns whether the instructions from here on raise an exception, whatever else there is."""
    if at is None:
        return False
    for one in instructions[at : at + MAX_INSTRUCTIONS]:
        if one.opname == "RAISE_VARARGS":
            return True
        if any(part in one.opname for part in ELSEWHERE):
            return False
    return False
