"""Triton's autotuner on a virtual GPU, where no configuration is faster than another: the first one that can be launched is taken,
and the others are not compiled.

A measurement allocates what has to be flushed from the caches, and frees it before the next one (triton/testing.py,
`do_bench`), so that the peak of one is that of many.
"""

from .. import imports
from ..patching import replace

NEVER = float("inf")


def install():
    """Watches the import of Triton's autotuner (triton/runtime/autotuner.py)."""
    imports.watch("triton.runtime.autotuner", _imported)


def _imported(module):
    # Tuners whose choice is made, until they begin another one.
    chosen = set()

    def choosing(original):
        def prune_configs(self, *args, **kwargs):
            chosen.discard(id(self))
            return original(self, *args, **kwargs)

        return prune_configs

    def measuring(original):
        def bench(self, *args, **kwargs):
            if id(self) in chosen:
                # As for a configuration that needs more than the device has.
                return [NEVER] * 3
            times = original(self, *args, **kwargs)
            if (times[0] if isinstance(times, (list, tuple)) else times) != NEVER:
                chosen.add(id(self))
            return times

        return bench

    replace(module.Autotuner, "prune_configs", choosing)
    replace(module.Autotuner, "_bench", measuring)
