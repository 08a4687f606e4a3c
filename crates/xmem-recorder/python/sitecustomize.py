"""Loads the recorder of `xmem profile` into a Python process, then the user's own sitecustomize.

Runs before the script. An error in here must not stop the script.
"""

import os
import sys


def _load_recorder():
    here = os.path.dirname(os.path.abspath(__file__))
    session = os.environ.get("XMEM_RECORDER", "")
    if not session or os.path.dirname(here) != os.path.abspath(session):
        return
    import importlib.machinery
    import importlib.util

    class Loader(importlib.machinery.SourceFileLoader):
        """Names files `torch/xmem_recorder/…`, so that recorded stacks count them as torch's."""

        def source_to_code(self, data, path, *, _optimize=-1):
            return super().source_to_code(data, "torch/" + os.path.relpath(path, here))

        def set_data(self, path, data, *, _mode=0o666):
            pass

    class Finder:
        """Finds the recorder's modules without its folder on `sys.path`."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] != "xmem_recorder":
                return None
            folder = os.path.join(here, *name.split("."))
            if os.path.isdir(folder):
                file, folders = os.path.join(folder, "__init__.py"), [folder]
            else:
                file, folders = folder + ".py", None
            if not os.path.exists(file):
                return None
            loader = Loader(name, file)
            return importlib.util.spec_from_file_location(
                name, file, loader=loader, submodule_search_locations=folders
            )

    # The script sees its usual search path.
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    sys.meta_path.insert(0, Finder)
    import xmem_recorder

    xmem_recorder.start(session)


def _remove_bytecode():
    """Removes the compiled form of this file, if Python keeps it outside the recorder's folder
    (`PYTHONPYCACHEPREFIX`), with the folders that are empty then."""
    prefix = getattr(sys, "pycache_prefix", None)
    cached = getattr(__spec__, "cached", None)
    if not prefix or not cached:
        return
    try:
        os.unlink(cached)
        folder = os.path.dirname(cached)
        while len(folder) > len(os.path.abspath(prefix)):
            os.rmdir(folder)
            folder = os.path.dirname(folder)
    except OSError:
        pass


def _load_the_users_own():
    this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this


try:
    _load_recorder()
except Exception as error:
    print(f"xmem profile: cannot load the recorder: {error!r}", file=sys.stderr)
_remove_bytecode()
_load_the_users_own()
