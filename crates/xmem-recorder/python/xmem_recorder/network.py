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

from . import imports, session
from .patching import replace

# What takes trackers offline, by the variables that their documentation names.
TRACKERS = {
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_MODE": "disabled",
    "DVCLIVE_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "NEPTUNE_MODE": "debug",
    "SWANLAB_MODE": "disabled",
    "WANDB_MODE": "disabled",
}
READING = {"GET", "HEAD", "OPTIONS"}
# Ports of web servers, and of the usual proxies.
WEB = {80, 443, 8080, 8443, 3128}

_refused = set()


def start():
    """Takes trackers offline and watches connections; before the script runs."""
    if not session.settings().get("offline"):
        return
    os.environ.update(TRACKERS)
    sys.addaudithook(_watch_connections)
    imports.watch("http.client", _http_imported)
    imports.watch("httpx", _httpx_imported)
    imports.watch("aiohttp.client", _aiohttp_imported)
    imports.watch("huggingface_hub.hf_api", _hub_imported)
    imports.watch("mlflow", _mlflow_imported)
    imports.watch("wandb", _wandb_imported)


def _watch_connections(event, args):
    if event == "socket.connect":
        address = args[1]
        if isinstance(address, tuple) and len(address) >= 2:
            host, port = str(address[0]), address[1]
            if port not in WEB and not _is_here(host) and port not in _proxies():
                raise _refusal(f"a connection to port {port}", host)


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
            f"{what} of {host} was refused: a recording sends nothing to other machines; "
            "--let-write all lets it"
        )
    return ConnectionRefusedError(errno.ECONNREFUSED, f"xmem profile refuses {what} of {host}")


def _check(method, host):
    method = str(method).upper()
    if method not in READING and not _is_here(host):
        raise _refusal(f"a {method} request", host)


def _http_imported(client):
    """Also urllib, requests, urllib3 and botocore."""

    def putrequest(original):
        def put(self, method, url, *args, **kwargs):
            host = getattr(self, "_tunnel_host", None) or self.host
            # Proxies get a CONNECT, and the request of the script behind it.
            if str(method).upper() != "CONNECT":
                _check(method, host)
            return original(self, method, url, *args, **kwargs)

        return put

    replace(client.HTTPConnection, "putrequest", putrequest)


def _httpx_imported(httpx):
    def send(original):
        def checked(self, request, *args, **kwargs):
            _check(request.method, request.url.host)
            return original(self, request, *args, **kwargs)

        return checked

    replace(httpx.Client, "send", send)
    replace(httpx.AsyncClient, "send", send)


def _aiohttp_imported(client):
    def request(original):
        def checked(self, method, url, *args, **kwargs):
            host = getattr(url, "host", None) or str(url).partition("//")[2].partition("/")[0].partition(":")[0]
            _check(method, host)
            return original(self, method, url, *args, **kwargs)

        return checked

    replace(client.ClientSession, "_request", request)


class _Nothing:
    """The answer of a hub that was not asked: an address, whatever is asked of it."""

    repo_id = "offline"
    commit_url = repo_url = url = pr_url = "https://offline.invalid"
    oid = commit_message = commit_description = ""

    def result(self, timeout=None):
        return self

    def done(self):
        return True

    def __str__(self):
        return self.url


def _hub_imported(module):
    """Uploads end well and do nothing."""

    def upload(original):
        def skipped(self, *args, **kwargs):
            session.note("what the script pushes to a hub is not sent")
            return _Nothing()

        return skipped

    for name in (
        "create_branch",
        "create_commit",
        "create_repo",
        "create_tag",
        "delete_file",
        "delete_folder",
        "delete_repo",
        "update_repo_settings",
        "upload_file",
        "upload_folder",
        "upload_large_folder",
    ):
        replace(module.HfApi, name, upload)
        # The functions of the package are methods of one object.
        if hasattr(module, name) and hasattr(module, "api"):
            setattr(module, name, getattr(module.api, name))
    package = sys.modules.get("huggingface_hub")
    for name in list(getattr(package, "__dict__", {})):
        if hasattr(module, name) and hasattr(module.HfApi, name):
            setattr(package, name, getattr(module, name))


def _mlflow_imported(mlflow):
    """Servers of other machines are replaced by a folder, which is kept out of the files of the user."""
    folder = "file:" + os.path.join(os.path.abspath("."), "mlruns")

    def set_uri(original):
        def local(uri, *args, **kwargs):
            remote = "://" in str(uri) and not str(uri).startswith(("file:", "sqlite:"))
            return original(folder if remote else uri, *args, **kwargs)

        return local

    for name in ("set_tracking_uri", "set_registry_uri"):
        replace(mlflow, name, set_uri)
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    if "://" in uri and not uri.startswith(("file:", "sqlite:")):
        mlflow.set_tracking_uri(folder)


def _wandb_imported(wandb):
    """Scripts that ask for a mode do not get it."""

    def init(original):
        def disabled(*args, **kwargs):
            kwargs["mode"] = "disabled"
            return original(*args, **kwargs)

        return disabled

    replace(wandb, "init", init)
