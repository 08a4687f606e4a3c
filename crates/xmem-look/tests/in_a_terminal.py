"""Runs a command in a pseudo-terminal of 80 columns and 24 rows.

python3 in_a_terminal.py STEPS COMMAND...: STEPS is JSON, a list of [TEXT, KEYS]: once the output has TEXT, KEYS are
typed; the keys "SIGTERM" stand for that signal, "HANGUP" for the end of the terminal. Prints JSON: the exit code (negative for a signal), the output in hexadecimal,
and whether the settings of the terminal are as before.
"""
import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import termios

LONGEST = 120

steps, command = json.loads(sys.argv[1]), sys.argv[2:]
ours, theirs = os.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
before = termios.tcgetattr(theirs)


def own_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


process = subprocess.Popen(
    command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=own_terminal
)
output = b""


def read():
    """Reads what is there; false once nothing comes for a long time."""
    global output
    ready, _, _ = select.select([ours], [], [], 0.2)
    if ready:
        output += os.read(ours, 65536)
    return bool(ready)


def wait(until):
    waited = 0.0
    while not until():
        if not read():
            waited += 0.2
        if waited > LONGEST:
            process.kill()
            sys.exit(f"waited in vain; the output so far: {output!r}")


for text, keys in steps:
    # A command that ends early types no more.
    wait(lambda: text.encode() in output or process.poll() is not None)
    if process.poll() is not None:
        break
    if keys == "HANGUP":
        os.close(ours)
        os.close(theirs)
        try:
            print(json.dumps({"code": process.wait(timeout=LONGEST)}))
        except subprocess.TimeoutExpired:
            process.kill()
            sys.exit("runs on without its terminal")
        sys.exit(0)
    if keys == "SIGTERM":
        process.send_signal(signal.SIGTERM)
    else:
        os.write(ours, keys.encode())
wait(lambda: process.poll() is not None)
while read():
    pass
print(
    json.dumps(
        {
            "code": process.returncode,
            "output": output.hex(),
            "settings_are_as_before": termios.tcgetattr(theirs) == before,
        }
    )
)
