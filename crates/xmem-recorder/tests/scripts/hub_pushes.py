"""A model and its card are pushed to a hub that does not have the repository: nothing but questions arrives there."""
# /// xmem
# torch = ">=2.15"
# iterations = 3
# stdout = ["pushed to me/model", "card with a tag: True", "changes: 0, questions: True"]
# stderr = ["note: what the script pushes to a hub is not sent"]
# environment = { TRANSFORMERS_VERBOSITY = "error", HF_HUB_OFFLINE = "0" }
# ///
import http.server
import os
import threading

asked = []


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub without any repository."""

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        asked.append(self.command)
        self.send_response(401)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"

import huggingface_hub  # noqa: E402
import torch  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=64, n_positions=32)).cuda()
repository = huggingface_hub.create_repo("me/model", exist_ok=True, token="none")
model.push_to_hub("me/model", token="none", tags=["small"])
print("pushed to", repository.repo_id, flush=True)
card = huggingface_hub.ModelCard("---\ntags:\n- small\n---\nA model.")
card.push_to_hub("me/model", token="none")
print("card with a tag:", card.data.tags == ["small"], flush=True)
huggingface_hub.upload_file(path_or_fileobj=b"{}", path_in_repo="run.json", repo_id="me/model", token="none")
huggingface_hub.HfApi(token="none").create_discussion("me/model", title="trained")
changes = [method for method in asked if method not in ("GET", "HEAD")]
print(f"changes: {len(changes)}, questions: {bool(asked)}", flush=True)

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    ids = torch.zeros(2, 16, dtype=torch.long, device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
