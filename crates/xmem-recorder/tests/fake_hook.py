"""The beginning of the scripts of these tests: the hook's side of the protocol, without PyTorch."""
import json
import os
import subprocess  # noqa: F401
import signal
import sys
import time

PARENT = os.getppid()
SESSION = os.environ["XMEM_RECORDER"]
TRACE = """{"schemaVersion": 1,
"xmem_recording": {"redirected": [{"what": "Module.to", "times": 2}]},
"traceEvents": []}
"""


def say(event, **rest):
    line = "\n" + json.dumps({"event": event, "pid": os.getpid(), **rest}) + "\n"
    control = os.open(SESSION + "/control", os.O_WRONLY)
    os.write(control, line.encode())
    os.close(control)


def start(iterations=0):
    say("python", parent=os.getppid(), version="3.99.1")
    say("torch", version="2.99.0+cpu")
    say("recording")
    for number in range(1, iterations + 1):
        say("iteration", number=number, seconds=0.25, of="optimizer steps")


def announce(iterations, reason, **rest):
    path = f"{SESSION}/{os.getpid()}.json"
    os.mkfifo(path + ".tmp")
    say("export", path=path, iterations=iterations, reason=reason, **rest)
    return path


def export(iterations=3, reason="steps", trace=TRACE, **rest):
    path = announce(iterations, reason, **rest)
    with open(path + ".tmp", "w") as pipe:
        pipe.write(trace)
    os.rename(path + ".tmp", path)
    say("exported", streamed=True)


def save_when_asked(iterations):
    """Ends the script with a recording at SIGUSR2, as the hook does; the file holds the reason."""

    def save(number, frame):
        with open(SESSION + "/stop") as stop:
            export(iterations, stop.read())
        sys.exit(0)

    signal.signal(signal.SIGUSR2, save)


def wait():
    """Waits longer than any test takes, but not forever."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        time.sleep(1)
