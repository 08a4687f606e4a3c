"""What DeepSpeed compiles and compares with rank 0, in a package with the same names, as another rank."""
# /// xmem
# options = ["--ranks", "4", "--rank", "1"]
# iterations = 3
# skip-on-cpu = "DeepSpeed compiles its optimizers for a GPU"
# [virtual-gpu]
# stdout = ["rank 1 agrees", "the optimizer is loaded: True"]
# [virtual-gpu.replay]
# "/by_role/optimizer_state" = 2097664
# ///
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn

BUILDER = """
def installed_cuda_version():
    raise OSError("CUDA_HOME does not exist, unable to compile CUDA op(s)")


class OpBuilder:
    def __init__(self, name):
        self.name = name

    def load(self, verbose=True):
        raise OSError("CUDA_HOME environment variable is not set")
"""
UTILS = """
import torch
import torch.distributed as dist


def get_lst_from_rank0(own):
    tensor = torch.tensor(own if dist.get_rank() == 0 else [-1] * len(own), device="cuda")
    dist.broadcast(tensor, src=0)
    return [element.item() for element in tensor.cpu()]


def assert_lst_len_same_as_other_ranks(own):
    length = torch.tensor(len(own) if dist.get_rank() == 0 else -1, device="cuda")
    dist.broadcast(length, src=0)
    if length.cpu().item() != len(own):
        raise RuntimeError("Detected a disagreement on list length")


def assert_ints_same_as_other_ranks(own):
    assert_lst_len_same_as_other_ranks(own)
    if get_lst_from_rank0(own) != own:
        raise RuntimeError("Detected a disagreement on list contents")
"""
with tempfile.TemporaryDirectory() as folder:
    for path, text in {"ops/op_builder/builder.py": BUILDER, "runtime/zero/utils.py": UTILS}.items():
        path = os.path.join(folder, "deepspeed", path)
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as file:
            file.write(text)
    sys.path.insert(0, folder)
    from deepspeed.ops.op_builder.builder import OpBuilder, installed_cuda_version
    from deepspeed.runtime.zero import utils


class FusedAdam(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
        self.overflow = torch.tensor([0], dtype=torch.int32, device="cuda")
        self.multi_tensor_adam = OpBuilder("fused_adam").load().multi_tensor_adam
        print(f"the optimizer is loaded: {installed_cuda_version()[0] > 10}", flush=True)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["exp_avg"] = torch.zeros_like(parameter)
                    state["exp_avg_sq"] = torch.zeros_like(parameter)
            states = [self.state[parameter] for parameter in group["params"]]
            moments = [[state[name] for state in states] for name in ("exp_avg", "exp_avg_sq")]
            lists = [[parameter.grad for parameter in group["params"]], group["params"], *moments]
            self.multi_tensor_adam(2048 * 32, self.overflow, lists, 1e-3, 0.9, 0.999, 1e-8, 1, 1, 1, 0.0)


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
utils.assert_ints_same_as_other_ranks([3, 1, 4])
print(f"rank {dist.get_rank()} agrees", flush=True)
model = nn.Linear(512, 512, bias=False).cuda()
optimizer = FusedAdam(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
dist.destroy_process_group()
