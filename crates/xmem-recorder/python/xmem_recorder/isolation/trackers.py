"""Trackers of experiments while a script is recorded: they are offline.

A few steps are no run: trackers would show an empty one.
"""

import os

from .. import imports, session
from ..patching import replace

# What takes trackers offline, by the variables that their documentation names.
VARIABLES = {
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_AUTO_LOG_DISABLE": "1",
    "COMET_MODE": "disabled",
    "DVCLIVE_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "NEPTUNE_MODE": "debug",
    "SWANLAB_MODE": "disabled",
    "WANDB_MODE": "disabled",
}
# The same where a script asks for a mode: by module, the name of the tracker, what begins a run, and its argument.
RUNS = {
    "comet_ml": (
        "Comet",
        (
            "Experiment.__init__",
            "ExistingExperiment.__init__",
            "OfflineExperiment.__init__",
            "ExistingOfflineExperiment.__init__",
        ),
        {"disabled": True},
    ),
    "neptune": (
        "Neptune",
        ("Run.__init__", "Model.__init__", "ModelVersion.__init__", "Project.__init__"),
        {"mode": "debug"},
    ),
    "swanlab": ("SwanLab", ("init",), {"mode": "disabled"}),
    "wandb": ("Weights & Biases", ("init",), {"mode": "disabled"}),
}


def start():
    """Takes trackers offline; before the script runs."""
    if not session.settings().get("offline"):
        return
    os.environ.update(VARIABLES)
    imports.watch("mlflow", _mlflow_imported)
    imports.watch("mlflow.tracking.registry", _mlflow_stores_imported)
    for module in RUNS:
        imports.watch(module, _tracker_imported)


def _mlflow_imported(mlflow):
    """Servers of other machines are replaced by a folder, which is kept out of the files of the user."""

    def set_uri(original):
        def local(uri, *args, **kwargs):
            return original(_mlflow_folder() if _is_server(uri) else uri, *args, **kwargs)

        return local

    for name in ("set_tracking_uri", "set_registry_uri"):
        replace(mlflow, name, set_uri)
    if _is_server(os.environ.get("MLFLOW_TRACKING_URI")):
        mlflow.set_tracking_uri(_mlflow_folder())


def _mlflow_stores_imported(module):
    """The same for addresses that are given otherwise, as to `MlflowClient`."""

    def get_store_builder(original):
        def builder(self, store_uri):
            if not _is_server(store_uri):
                return original(self, store_uri)
            folder = _mlflow_folder()
            build = original(self, folder)
            return lambda store_uri, *args, **kwargs: build(folder, *args, **kwargs)

        return builder

    replace(module.StoreRegistry, "get_store_builder", get_store_builder)


def _is_server(uri):
    """Returns whether an address of MLflow is that of a server or of a database on one."""
    uri = str(uri or "")
    return uri.startswith("databricks") or "://" in uri and not uri.startswith(("file:", "sqlite:"))


def _mlflow_folder():
    session.note("MLflow is offline: what the script logs is not sent")
    # MLflow 3.17 and later refuse folders without it (mlflow/store/tracking/file_store.py, `FileStore.__init__`).
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    return "file:" + os.path.join(os.path.abspath("."), "mlruns")


def _tracker_imported(module):
    """Scripts that ask for a mode do not get it, unless they only read."""
    tracker, functions, offline = RUNS[module.__name__]

    def begin(original):
        def offline_run(*args, **kwargs):
            if kwargs.get("mode") != "read-only":
                session.note(f"{tracker} is offline: what the script logs is not sent")
                kwargs.update(offline)
            return original(*args, **kwargs)

        return offline_run

    for function in functions:
        owner, _, name = function.rpartition(".")
        owner = getattr(module, owner, None) if owner else module
        if owner is not None:
            replace(owner, name, begin)
