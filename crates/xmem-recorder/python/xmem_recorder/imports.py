"""Callbacks for the import of a module: its discovery, its end, its failure."""

import importlib.util
import sys

from . import errors, session

_stays_first = False


class _Watcher:
    """Finds a module as Python does, and calls `then` once it has been executed, or `failed` with the
    error. `found` is called with its spec."""

    def __init__(self, name, found, then, failed):
        self.name = name
        self.found = found
        self.then = then
        self.failed = failed
        self.searching = False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searching = False
        if spec is not None:
            self.found(spec)
        if spec is None or spec.loader is None:
            return None
        spec.loader = _LoaderOfWatcher(spec.loader, self)
        return spec


class Loader:
    """Loads through another loader, which it then restores; `run` executes a module by it."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        self.run(module)


def find_behind(finder, name, path, target):
    """The spec of a module as the finders behind one give it."""
    for other in sys.meta_path[sys.meta_path.index(finder) + 1 :]:
        find = getattr(other, "find_spec", None)
        spec = find(name, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


class _LoaderOfWatcher(Loader):
    """Tells its watcher how the execution ended."""

    def __init__(self, loader, watcher):
        super().__init__(loader)
        self.watcher = watcher

    def run(self, module):
        try:
            self.loader.exec_module(module)
        except Exception as error:
            self.watcher.failed(error)
            raise
        if self.watcher in sys.meta_path:
            sys.meta_path.remove(self.watcher)
        self.watcher.then(module)


def when_imported(name, found, then, failed):
    """Calls `found` with the spec of the module of that name when it is imported, then `then` with the
    module or `failed` with the error."""
    global _stays_first
    sys.meta_path.insert(0, _Watcher(name, found, then, failed))
    if not _stays_first:
        _stays_first = True
        sys.addaudithook(_stay_first)


def _stay_first(event, _args):
    """Puts the watchers in front again when a module is to be found: packages that also watch imports put their own
    finders there, and may look for the module without the others."""
    if event == "import" and sys.meta_path and not isinstance(sys.meta_path[0], _Watcher):
        ours = [finder for finder in sys.meta_path if isinstance(finder, _Watcher)]
        sys.meta_path[:] = ours + [finder for finder in sys.meta_path if not isinstance(finder, _Watcher)]


def watch(name, then):
    """Calls `then` with the module of that name once it has been imported; an error in it is not the script's."""

    def imported(module):
        try:
            then(module)
        except Exception as error:
            session.note(f"{name} is used as it is: {errors.describe(error)}")

    if name in sys.modules:
        imported(sys.modules[name])
    else:
        when_imported(name, lambda _spec: None, imported, lambda _error: None)


def inside_import():
    """Returns whether an import is running: libraries make small modules then, but no model."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
