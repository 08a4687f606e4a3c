"""The place of the recorded process in its job, which the user chooses (`xmem profile --ranks`)."""

import os

from .. import session

# A measure keeps from the script that it is one of several processes (`measures.sharding`).
_RANK_AT_START = os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or "0"


def wanted():
    """The place of the recorded process: `rank`, `world_size`, `local_rank`, `local_world_size`, `node`, `nodes`.
    None if all processes of the job run."""
    return session.settings().get("rank")


def is_wanted():
    """Returns whether this process is not one of the others of its job."""
    if wanted() is None:
        return (os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or _RANK_AT_START) == "0"
    return os.environ.get("RANK", "") in ("", str(wanted()["rank"]))


def device():
    """The number of the GPU of this process: that of its rank, if it is one of a job that runs alone."""
    return (wanted() or {}).get("local_rank", 0)
