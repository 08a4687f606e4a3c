"""The lines of the script that call functions and operators, which a trace lacks: its Python calls have the line of
the function's `def` only.

torch's profiler knows the line of each call (torch/csrc/autograd/profiler_python.cpp, `CodeLocation`), and leaves it out
when it exports a trace. Operators that Python calls without a function (`x + y`) have no such line: it is found in the
bytecode, between the calls before and after. The result are numbers: times and lines, for calls and operators right
inside a function that is not of torch or of Python's own library.
"""

import dis
import os
import sys
import time

# Seconds after which the search ends.
LIMIT = 30
# Python's own files whose functions are no place in a program (crates/xmem-analyzer/src/python.rs, `is_user_file`).
STANDARD = (
    "contextlib.py",
    "functools.py",
    "typing.py",
    "typing_extensions.py",
    "threading.py",
    "inspect.py",
    "warnings.py",
    "copy.py",
    "abc.py",
    "enum.py",
)
OPERATORS = ("BINARY_", "COMPARE_OP", "INPLACE_", "UNARY_", "STORE_SUBSCR", "CONTAINS_OP")
CALLS = ("CALL", "LOAD_ATTR", "LOAD_METHOD", "FOR_ITER", "GET_ITER", "BEFORE_WITH", "FORMAT_")

_is_users = {}
_instructions = {}


def is_user_file(path):
    """Returns whether a file is the user's or a library's, rather than torch's or Python's own."""
    known = _is_users.get(path)
    if known is None:
        known = path.endswith(".py") and not path.startswith(_folders_of_torch())
        known = known and os.path.basename(path) not in STANDARD
        _is_users[path] = known
    return known


def _folders_of_torch():
    """The beginnings of torch's own paths, as they are and as the profiler shortens them. An environment may be called
    `torch`, too."""
    torch = sys.modules.get("torch")
    return ("torch/", *(os.path.join(folder, "") for folder in getattr(torch, "__path__", ())))


def of_profiler(profiler):
    """Times and lines of a profiler that has stopped; None if it has none."""
    results = getattr(profiler.profiler, "kineto_results", None)
    if not hasattr(results, "experimental_event_tree"):
        return None
    found = []
    deadline = time.monotonic() + LIMIT
    open_events = list(results.experimental_event_tree())
    count = 0
    while open_events:
        event = open_events.pop()
        children = event.children
        if children:
            place = _place(event)
            if place is not None:
                _add_lines(place, children, found)
            open_events.extend(children)
        count += 1
        if count % 10000 == 0 and time.monotonic() > deadline:
            break
    if not found:
        return None
    found.sort()
    starts, before = [], 0
    for start, _ in found:
        starts.append(start - before)
        before = start
    return {"schema": "xmem.lines.1", "starts": starts, "lines": [line for _, line in found]}


def _place(event):
    """File, line and name of the function that an event is a call of, if it is the user's."""
    fields = event.extra_fields
    call = getattr(fields, "callsite", None)
    if call is None or getattr(fields, "module", None) is not None or not is_user_file(call.file_name):
        return None
    return call.file_name, call.line_number, call.function_name


def _add_lines(place, children, found):
    """Adds the lines of what a function calls."""
    line, operators = None, []
    for child in children:
        caller = getattr(child.extra_fields, "caller", None)
        if caller is None:
            if hasattr(child.extra_fields, "inputs"):
                operators.append(child.start_time_ns)
            continue
        if caller.function_name != place[2]:
            continue
        _add_operators(place, operators, line, caller.line_number, found)
        line, operators = caller.line_number, []
        found.append((child.start_time_ns, line))
    _add_operators(place, operators, line, None, found)


def _add_operators(place, operators, before, after, found):
    """Adds operators between a call in the line `before` and one in `after`."""
    if not operators:
        return
    lines = [before] if before == after else _lines_between(place, before, after)
    lines = lines or [line for line in (before, after) if line is not None]
    for position, start in enumerate(operators):
        if lines:
            found.append((start, lines[min(position, len(lines) - 1)]))


def _lines_between(place, before, after):
    """The lines of the operators in the bytecode between these calls, in its order."""
    if place not in _instructions:
        try:
            _instructions[place] = _instructions_of(*place)
        except Exception:
            _instructions[place] = []
    instructions = _instructions[place]
    begin = max((at for at, (line, is_call) in enumerate(instructions) if is_call and line == before), default=-1)
    end = [at for at, (line, is_call) in enumerate(instructions) if is_call and line == after and at > begin]
    between = instructions[begin + 1 : max(end, default=len(instructions))]
    return [line for line, is_call in between if not is_call]


def _instructions_of(file, line, name):
    """Lines of the calls and operators of a function, and whether they are calls."""
    code = _code(file, line, name)
    found, now = [], None
    for instruction in dis.get_instructions(code):
        positions = getattr(instruction, "positions", None)
        if positions is not None:
            now = positions.lineno or now
        elif instruction.starts_line:
            now = instruction.starts_line
        if instruction.opname.startswith(OPERATORS):
            found.append((now, False))
        elif instruction.opname.startswith(CALLS):
            found.append((now, True))
    return found


def _code(file, line, name):
    """The code of the innermost function of this name around a line of a file."""
    folders = [folder for folder in ["", *sys.path] if os.path.exists(os.path.join(folder, file))]
    with open(os.path.join(folders[0], file), "rb") as source:
        module = compile(source.read(), file, "exec", dont_inherit=True)
    best, todo = None, [module]
    while todo:
        code = todo.pop()
        todo += [inner for inner in code.co_consts if hasattr(inner, "co_code")]
        lines = [number for _, number in dis.findlinestarts(code) if number]
        if code.co_name == name and lines and min(code.co_firstlineno, *lines) <= line <= max(lines):
            if best is None or code.co_firstlineno >= best.co_firstlineno:
                best = code
    return best
