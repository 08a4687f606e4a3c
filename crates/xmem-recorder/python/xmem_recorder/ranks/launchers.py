"""Launchers of a job of which one process runs: they start that one.

- `torchrun`, `python -m torch.distributed.run`, `accelerate launch`: the launcher's process becomes the script;
- `torch.multiprocessing.spawn`: the function is called in this process;
- launchers that start a process for each rank with its environment, as DeepSpeed's: the others are not started.
"""

import functools
import os
import subprocess
import sys

from .. import imports, session
from ..patching import replace
from . import place


def start():
    """Prepares any process, before torch is imported; nothing if all processes of the job run."""
    wanted = place.wanted()
    if wanted is None:
        return
    original = subprocess.Popen.__init__

    @functools.wraps(original)
    def popen(self, args, *rest, **kwargs):
        environment = kwargs.get("env")
        if environment is None and len(rest) > 9:
            environment = rest[9]
        if environment is not None and _is_other(environment, wanted):
            args = [sys.executable, "-I", "-S", "-c", ""]
            kwargs["shell"] = False
        return original(self, args, *rest, **kwargs)

    subprocess.Popen.__init__ = popen


def _is_other(environment, wanted):
    """Returns whether an environment is that of another rank, which is not to run."""
    if environment.get(session.VARIABLE, session.folder()) != session.folder():
        return False
    for name, key in (("RANK", "rank"), ("LOCAL_RANK", "local_rank")):
        value = environment.get(name)
        if value is not None:
            return str(value) != str(wanted[key])
    return False


def install(torch, wanted):
    """Prepares a process with torch; `wanted` is the place of the recorded one."""
    imports.watch("torch.distributed.launcher.api", lambda api: replace(api, "launch_agent", _launch_agent(wanted)))
    multiprocessing = torch.multiprocessing
    module = sys.modules["torch.multiprocessing.spawn"]
    start_processes = _start_processes(wanted, module)
    replace(module, "start_processes", lambda _: start_processes)
    replace(module, "spawn", lambda _: _spawn(start_processes))
    multiprocessing.start_processes, multiprocessing.spawn = module.start_processes, module.spawn


def _launch_agent(wanted):
    """In place of the agent that starts the processes of a node and waits for them
    (torch/distributed/elastic/agent/server/local_elastic_agent.py, `_start_workers`)."""

    def wrapper(original):
        def launch_agent(config, entrypoint, args, *_rest, **_options):
            requested = config.nproc_per_node * config.max_nodes
            if requested != wanted["world_size"]:
                session.note(
                    f"the launcher was asked for {requested} processes; the script sees a world size of "
                    f"{wanted['world_size']}"
                )
            run_id = config.run_id or "none"
            os.environ.update(
                {
                    **variables(wanted),
                    "ROLE_NAME": config.role,
                    "ROLE_RANK": str(wanted["rank"]),
                    "ROLE_WORLD_SIZE": str(wanted["world_size"]),
                    "TORCHELASTIC_RESTART_COUNT": "0",
                    "TORCHELASTIC_MAX_RESTARTS": str(config.max_restarts),
                    "TORCHELASTIC_RUN_ID": run_id,
                    "TORCHELASTIC_USE_AGENT_STORE": "True",
                }
            )
            os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
            if callable(entrypoint):
                return {wanted["rank"]: entrypoint(*args)}
            sys.stdout.flush()
            sys.stderr.flush()
            os.execvp(entrypoint, [entrypoint, *map(str, args)])

        return launch_agent

    return wrapper


def variables(wanted):
    """The variables by which a launcher tells a process its place."""
    return {
        "RANK": str(wanted["rank"]),
        "WORLD_SIZE": str(wanted["world_size"]),
        "LOCAL_RANK": str(wanted["local_rank"]),
        "LOCAL_WORLD_SIZE": str(wanted["local_world_size"]),
        "GROUP_RANK": str(wanted["node"]),
        "GROUP_WORLD_SIZE": str(wanted["nodes"]),
    }


class _Ended:
    """In place of `ProcessContext`, for a function that has returned."""

    processes = ()
    sentinels = ()

    def join(self, timeout=None, grace_period=None):
        return True

    def pids(self):
        return []


def _start_processes(wanted, module):
    def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn", **_):
        number = wanted["rank"] if nprocs == wanted["world_size"] else wanted["local_rank"]
        if nprocs not in (wanted["world_size"], wanted["local_world_size"]):
            session.note(
                f"the script starts {nprocs} processes, and not {wanted['local_world_size']}, one for each rank of a "
                "node"
            )
            number = min(number, nprocs - 1)
        fn(number, *args)
        return None if join else _Ended()

    return start_processes


def _spawn(start_processes):
    def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
        return start_processes(fn, args, nprocs, join, daemon, start_method)

    return spawn
