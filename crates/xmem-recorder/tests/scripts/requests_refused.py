"""Requests that change something on another machine are refused with the error of each library, and pass on this one."""
# /// xmem
# iterations = 3
# stdout = ["refused: …URLError", "not here: True", "refused: 2", "received: PUT POST"]
# stderr = ["note: a POST request to 192.0.2.1 was refused: a recording sends nothing to other machines…"]
# ///
import asyncio
import http.server
import importlib
import socket
import threading
import urllib.error
import urllib.request

import torch
from torch import nn

THERE = "http://192.0.2.1/runs"
received = []


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        received.append(self.command)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_PUT = do_POST

    def log_message(self, *_):
        pass


async def post_with_aiohttp(aiohttp, url):
    async with aiohttp.ClientSession() as session:
        async with session.post(url) as response:
            return response.status


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
here = f"http://127.0.0.1:{server.server_port}/runs"
urllib.request.urlopen(urllib.request.Request(here, method="PUT")).read()
urllib.request.urlopen(here, data=b"{}").read()
print("received:", *received, flush=True)
try:
    urllib.request.urlopen(THERE, data=b"{}", timeout=5)
except urllib.error.URLError as error:
    print("refused:", type(error), "URLError", flush=True)

# Each raises errors of its own where it is installed.
refused = []
for name in ("httpx", "httpx2"):
    try:
        client = importlib.import_module(name)
    except ImportError:
        continue
    try:
        client.post(THERE, timeout=5)
    except client.HTTPError as error:
        refused.append("xmem profile refuses a POST request" in str(error))
try:
    import aiohttp
except ImportError:
    pass
else:
    try:
        asyncio.run(post_with_aiohttp(aiohttp, THERE))
    except aiohttp.ClientError as error:
        refused.append("xmem profile refuses a POST request" in str(error))
print("not here:", all(refused), flush=True)

count = 0
for send in (
    lambda: socket.create_connection(("192.0.2.1", 6379), 5),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"steps:1|c", ("192.0.2.1", 8125)),
):
    try:
        send()
    except ConnectionRefusedError as error:
        count += "xmem profile refuses a connection" in str(error)
print("refused:", count, flush=True)

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
