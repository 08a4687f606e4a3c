"""What a script would send to other machines while it is recorded: nothing.

Requests that change something (POST, PUT, PATCH, DELETE) are refused, and so are connections of Python to other
machines that are not to web servers. Requests that read (GET, HEAD, OPTIONS) pass, as data sets and models are loaded
with them. Connections of C++ (torch's process groups) are not looked at. Trackers and hubs are left to `trackers` and
`hubs`, with which a script goes on.
"""

import errno
import ipaddress
import os
import sys
from urllib.parse import urlsplit

from .. import imports, session
from ..patching import replace

READING = {"GET", "HEAD", "OPTIONS"}
# Ports of web servers, and of the usual proxies.
WEB = {80, 443, 8080, 8443, 3128}
# The port of name servers, which are only asked.
NAMES = 53

_refused = set()


def start():
    """Watches connections and requests; before the script runs."""
    if not session.settings().get("offline"):
        return
    sys.addaudithook(_watch_connections)
    imports.watch("http.client", _http_imported)
    # The second is what huggingface_hub 2 has instead of the first.
    for module in ("httpx", "httpx2"):
        imports.watch(module, _httpx_imported)
    imports.watch("aiohttp.client", _aiohttp_imported)


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
