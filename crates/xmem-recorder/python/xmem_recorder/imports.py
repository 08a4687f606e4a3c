"""Callbacks for the import of a module."""

import importlib.util
import sys


class _Watcher:
    """Finds a module as Python does, and calls `then` once it has been executed."""

    def __init__(self, name, then):
        self.name = name
        self.then = then
        self.searching = False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searching = False
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader, self)
        return spec


class _Loader:
    """Loads through another loader, which it then restores."""

    def __init__(self, loader, watcher):
        self.loader = loader
        self.watcher = watcher

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        sys.meta_path.remove(self.watcher)
        self.watcher.then(module)


def when_imported(name, then):
    """Calls `then` with the module of that name once it has been imported."""
    sys.meta_path.insert(0, _Watcher(name, then))
