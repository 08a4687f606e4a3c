"""Prepares PyTorch for a recording: wraps the functions that show the progress of the script."""

from . import (
    abridged,
    after_steps,
    backward,
    end,
    expected,
    forward,
    iterations,
    lengths,
    loaders,
    parts,
    replicas,
    run,
    stepping,
    swapping,
    trainers,
    transforms,
)


def install(torch):
    """Installs all parts: once, right after the import of torch, and after those of the engine."""
    run.install(torch)
    abridged.install(torch)
    after_steps.install(torch)
    parts.install(torch)
    expected.install(torch)
    iterations.install(torch)
    forward.install(torch)
    stepping.install(torch)
    backward.install(torch)
    lengths.install(torch, iterations.count)
    loaders.install(torch)
    trainers.install()
    transforms.install()
    swapping.install(torch)
    replicas.install()
    end.install(torch)
