"""What a script would send to other machines while it is recorded: nothing.

A few steps are no run: trackers would show an empty one, and hubs get a model that is not trained. Trackers are
offline, requests that change something (POST, PUT, PATCH, DELETE) are refused, and so are connections of Python to
other machines that are not to web servers. Requests that read (GET, HEAD, OPTIONS) pass, as data sets and models are
loaded with them. Connections of C++ (torch's process groups) are not looked at.
"""

import errno
import ipaddress
import os
import sys
from urllib.parse import urlsplit

from . import imports, session
from .patching import replace

# What takes trackers offline, by the variables that their documentation names.
TRACKERS = {
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
READING = {"GET", "HEAD", "OPTIONS"}
# Methods of the Hugging Face Hub's client that change something there.
HUB_CHANGES = ("add_", "change_", "comment_", "create_", "delete_", "merge_", "move_", "preupload_", "rename_")
HUB_CHANGES += ("super_squash_", "update_", "upload_")
# Ports of web servers, and of the usual proxies.
WEB = {80, 443, 8080, 8443, 3128}
# The port of name servers, which are only asked.
NAMES = 53

_refused = set()


def start():
    """Takes trackers offline and watches connections; before the script runs."""
    if not session.settings().get("offline"):
        return
    os.environ.update(TRACKERS)
    sys.addaudithook(_watch_connections)
    imports.watch("http.client", _http_imported)
    # The second is what huggingface_hub 2 has instead of the first.
    for module in ("httpx", "httpx2"):
        imports.watch(module, _httpx_imported)
    imports.watch("aiohttp.client", _aiohttp_imported)
    imports.watch("huggingface_hub.hf_api", _hub_imported)
    imports.watch("huggingface_hub.file_download", _hub_downloads_imported)
    imports.watch("huggingface_hub.repocard", _hub_cards_imported)
    imports.watch("mlflow", _mlflow_imported)
    imports.watch("mlflow.tracking.registry", _mlflow_stores_imported)
    for module in RUNS:
        imports.watch(module, _tracker_imported)


def _watch_connections(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = args[1]
        if isinstance(address, tuple) and len(address) >= 2:
            host, port = str(address[0]), address[1]
            if port not in WEB and port != NAMES and not _is_here(host) and port not in _proxies():
                raise _refusal(f"a connection to port {port} of {host}", host)


def _proxies():
    """The ports of proxies that the environment names."""
    ports = set()
    for name, value in os.environ.items():
        if name.lower().endswith("_proxy") and ":" in value:
            end = value.rstrip("/").rpartition(":")[2]
            if end.isdigit():
                ports.add(int(end))
    return ports


def _is_here(host):
    """Returns whether a host is this machine."""
    if host in ("", "localhost") or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _refusal(what, host):
    """The error of what is refused, of which the user is told once for each host."""
    if host not in _refused:
        _refused.add(host)
        session.note(
            f"{what} was refused: a recording sends nothing to other machines; "
            "--let-write all lets it"
        )
    return ConnectionRefusedError(errno.ECONNREFUSED, f"xmem profile refuses {what}")


def _check(method, host):
    method = str(method).upper()
    if method not in READING and not _is_here(host):
        raise _refusal(f"a {method} request to {host}", host)


def _http_imported(client):
    """Also urllib, requests, urllib3 and botocore."""

    def putrequest(original):
        def put(self, method, url, *args, **kwargs):
            # A proxy without a tunnel gets the whole address.
            host = _host_of(url) or getattr(self, "_tunnel_host", None) or self.host
            # Proxies get a CONNECT, and the request of the script behind it.
            if str(method).upper() != "CONNECT":
                _check(method, host)
            return original(self, method, url, *args, **kwargs)

        return put

    replace(client.HTTPConnection, "putrequest", putrequest)


def _host_of(url):
    """The host of a whole address; empty for a path."""
    return urlsplit(str(url)).hostname or ""


def _httpx_imported(httpx):
    def send(original):
        def checked(self, request, *args, **kwargs):
            try:
                _check(request.method, request.url.host)
            except ConnectionRefusedError as error:
                raise httpx.ConnectError(str(error), request=request) from error
            return original(self, request, *args, **kwargs)

        return checked

    replace(httpx.Client, "send", send)
    replace(httpx.AsyncClient, "send", send)


def _aiohttp_imported(client):
    def request(original):
        def checked(self, method, url, *args, **kwargs):
            host = getattr(url, "host", None) or _host_of(url)
            try:
                _check(method, host)
            except ConnectionRefusedError as error:
                raise client.ClientOSError(error.errno, error.strerror) from error
            return original(self, method, url, *args, **kwargs)

        return checked

    replace(client.ClientSession, "_request", request)


class _Nothing:
    """The answer of a hub that was not asked: an address, whatever is asked of it."""

    commit_url = repo_url = url = pr_url = "https://offline.invalid"
    oid = commit_message = commit_description = ""

    def __init__(self, repo_id):
        self.repo_id = repo_id

    def result(self, timeout=None):
        return self

    def done(self):
        return True

    def __str__(self):
        return self.url


# What the script would have created or pushed to.
_pushed = set()


def _hub_imported(module):
    """Uploads end well and do nothing."""

    def upload(original):
        def skipped(self, *args, **kwargs):
            session.note("what the script pushes to a hub is not sent")
            repo_id = str(kwargs.get("repo_id") or (args[0] if args else "offline"))
            _pushed.add(repo_id)
            return _Nothing(repo_id)

        return skipped

    for name in dir(module.HfApi):
        if name.startswith(HUB_CHANGES):
            replace(module.HfApi, name, upload)
            # The functions of the package are methods of one object.
            if hasattr(module, name) and hasattr(module, "api"):
                setattr(module, name, getattr(module.api, name))
    package = sys.modules.get("huggingface_hub")
    for name in list(getattr(package, "__dict__", {})):
        if hasattr(module, name) and hasattr(module.HfApi, name):
            setattr(package, name, getattr(module, name))


def _hub_downloads_imported(module):
    """A repository that the script would have created has no file yet: its model card is then made, not loaded."""

    def download(original):
        def of_existing(*args, **kwargs):
            try:
                return original(*args, **kwargs)
            except Exception as error:
                repo_id = kwargs.get("repo_id") or (args[0] if args else None)
                if type(error).__name__ != "RepositoryNotFoundError" or repo_id not in _pushed:
                    raise
                raise module.LocalEntryNotFoundError(f"{repo_id} was not created while the job is recorded") from error

        return of_existing

    replace(module, "hf_hub_download", download)


def _hub_cards_imported(module):
    """Cards are checked by the hub, which gets them for it."""
    replace(module.RepoCard, "validate", lambda _original: lambda _self, *_args, **_kwargs: None)


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
