"""Runs a case of SimuMax's table as each of its eight ranks, and writes down the peaks that PyTorch counts.

    python simumax.py CHECKOUT GROUP RESULTS.json [RANK…]

CHECKOUT is Megatron-LM, whose `pretrain_gpt.py` runs. GROUP is a case such as `llama3_70b_l12_tp1_pp2_dp4_mbc4_cef`, whose name
states the model, the number of layers, the parallelism, the tokens of a sequence (4,096 if none are named) and the micro-batches.
The arguments are those of SimuMax's scripts. Three iterations, as in the table. Needs Transformer Engine.
"""

import datetime
import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tempfile
import traceback
import types

RANKS = 8
ITERATIONS = 3
# Of each model: width, width of the feed-forward part, heads, vocabulary.
MODELS = {
    "llama3_70b": (8192, 28672, 64, 128256),
    "llama3_405b": (16384, 53248, 128, 128256),
    "deepseekv2": (5120, 12288, 128, 102400),
    "deepseekv3": (7168, 18432, 128, 129280),
}
# Groups of keys and values of attention.
GROUPS = {"llama3_70b": 8, "llama3_405b": 16}
# Of each model with experts: their number, those of a token, their width, the width of the shared one.
EXPERTS = {"deepseekv2": (160, 6, 1536, 3072), "deepseekv3": (256, 8, 2048, 2048)}
SAME = """
    --disable-bias-linear --attention-dropout 0.0 --hidden-dropout 0.0 --position-embedding-type rope --no-position-embedding
    --swiglu --normalization RMSNorm --untie-embeddings-and-output-weights --seed 42 --micro-batch-size 1 --use-mcore-models
    --no-bias-dropout-fusion --use-distributed-optimizer --use-flash-attn --sequence-parallel --recompute-granularity full
    --recompute-method block --recompute-num-layers 0 --distributed-backend nccl --mock-data --weight-decay 0.1 --adam-beta1 0.9
    --adam-beta2 0.95 --clip-grad 1.0 --initial-loss-scale 65536 --min-loss-scale 1.0 --lr 2.4e-4 --lr-decay-style cosine
    --min-lr 1e-6 --lr-warmup-iters 1 --bf16 --attention-softmax-in-fp32 --no-masked-softmax-fusion
    --accumulate-allreduce-grads-in-fp32 --tokenizer-type NullTokenizer --split 1 --no-create-attention-mask-in-dataloader
    --log-interval 1 --log-throughput --eval-iters 0 --transformer-impl transformer_engine
    --cross-entropy-loss-fusion --cross-entropy-fusion-impl te
"""
DENSE = """
    --group-query-attention --init-method-std 0.008 --norm-epsilon 1e-5 --eval-interval 1000 --disable-tp-comm-bulk-wgrad
    --disable-tp-comm-bulk-dgrad --disable-tp-comm-overlap-rs --disable-tp-comm-overlap-ag --disable-tp-comm-split-ag
    --disable-tp-comm-split-rs
"""
SPARSE = """
    --init-method-std 0.006 --norm-epsilon 1e-6 --eval-interval 1 --multi-latent-attention --enable-experimental --qk-layernorm
    --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --rotary-scaling-factor 1
    --moe-token-dispatcher-type alltoall --moe-router-score-function softmax --moe-router-group-topk 3
    --moe-router-load-balancing-type seq_aux_loss --moe-router-pre-softmax --moe-router-topk-scaling-factor 16
    --moe-aux-loss-coeff 3e-3 --moe-expert-capacity-factor 1 --moe-grouped-gemm --moe-permute-fusion
    --moe-pad-expert-input-to-capacity
"""


def arguments(case):
    """What Megatron's script is given for a case."""
    model = next(name for name in MODELS if case.startswith(name))
    sizes = dict(re.findall(r"_(tp|pp|ep|cp|l|mbc|seq)(\d+)", case))
    layers = int(sizes["l"])
    tensor, pipeline, context = (int(sizes.get(name, 1)) for name in ("tp", "pp", "cp"))
    replicas = RANKS // (tensor * pipeline * context)
    width, inner, heads, vocabulary = MODELS[model]
    tokens = sizes.get("seq", "4096")
    given = [*SAME.split(), *(SPARSE if model in EXPERTS else DENSE).split()]
    given += ["--num-layers", layers, "--hidden-size", width, "--ffn-hidden-size", inner, "--num-attention-heads", heads]
    given += ["--vocab-size", vocabulary, "--seq-length", tokens, "--max-position-embeddings", tokens]
    given += ["--global-batch-size", int(sizes["mbc"]) * replicas, "--train-iters", ITERATIONS]
    given += ["--tensor-model-parallel-size", tensor, "--pipeline-model-parallel-size", pipeline]
    if context > 1:
        given += ["--context-parallel-size", context, "--cp-comm-type", "a2a"]
    if model in GROUPS:
        given += ["--num-query-groups", GROUPS[model]]
    else:
        experts, chosen, expert, shared = EXPERTS[model]
        parts = sizes["ep"]
        given += ["--num-experts", experts, "--moe-router-topk", chosen, "--moe-ffn-hidden-size", expert]
        given += ["--moe-shared-expert-intermediate-size", shared, "--moe-layer-freq", f"([0]*1+[1]*{layers - 1})*1"]
        given += ["--expert-model-parallel-size", parts, "--moe-router-num-groups", parts]
    return [str(argument) for argument in given]


def compile_helpers(checkout):
    """Compiles Megatron's loops over texts, and says where they are."""
    import torch

    source = os.path.join(checkout, "megatron", "core", "datasets", "helpers.cpp")
    headers = [os.path.join(os.path.dirname(torch.__file__), "include"), sysconfig.get_paths()["include"]]
    library = os.path.join(tempfile.mkdtemp(), "helpers_cpp" + sysconfig.get_config_var("EXT_SUFFIX"))
    options = ["-O1", "-shared", "-fPIC", "-std=c++17", *(f"-I{header}" for header in headers)]
    subprocess.run(["g++", *options, source, "-o", library], check=True)
    return library


def load_helpers(library):
    """Makes them importable, and keeps Megatron from compiling them on rank 0."""
    name = "megatron.core.datasets.helpers_cpp"
    spec = importlib.util.spec_from_file_location(name, library)
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    import megatron.core.datasets.utils

    megatron.core.datasets.utils.compile_helpers = lambda: None


def run(checkout, case, results, rank):
    """Runs the job as one rank."""
    import torch
    import torch.distributed as dist
    import torch.testing._internal.distributed.fake_pg

    class Present(dist.Store):
        """A store in which every rank has put what it puts there."""

        def set(self, key, value):
            pass

        def get(self, key):
            return b"\1" * 128

        def add(self, key, count):
            return RANKS

        def wait(self, *_):
            pass

        def check(self, keys):
            return True

        def set_timeout(self, timeout):
            pass

    store = Present()
    begin, new_group, broadcast = dist.init_process_group, dist.new_group, dist.broadcast

    def begin_alone(*_, **__):
        begin("nccl", store=store, rank=rank, world_size=RANKS, timeout=datetime.timedelta(seconds=60))

    def group_alone(*given, **options):
        if options.get("backend") == "gloo":
            options["backend"] = "fake"
        return new_group(*given, **options)

    def broadcast_alone(tensor, *given, **options):
        """Rank 0 tells the others whether there is text to train, validate and test with."""
        if tensor.dtype == torch.long and tensor.numel() == 3:
            tensor.copy_(torch.ones(3, dtype=torch.long))
        return broadcast(tensor, *given, **options)

    def finish(found):
        with open(results, "w") as file:
            json.dump(found, file)
        sys.stdout.flush()
        # What is left of the process group needs its other ranks.
        os._exit(0)

    # The workspaces of cuBLAS on Blackwell up to PyTorch 2.11, as in the container; since 2.12 they have 32 MiB.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:2:16:8"
    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(RANKS), LOCAL_WORLD_SIZE=str(RANKS))
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500", CUDA_DEVICE_MAX_CONNECTIONS="1")
    dist.init_process_group, dist.new_group, dist.broadcast = begin_alone, group_alone, broadcast_alone
    # Groups of all ranks get communicators of their own, as other groups do.
    dist.distributed_c10d._get_split_source = lambda _: None
    # Apex's products that add to the gradients where they are: nothing is allocated.
    products = types.ModuleType("fused_weight_gradient_mlp_cuda")
    products.wgrad_gemm_accum_fp32 = products.wgrad_gemm_accum_fp16 = lambda *_: None
    sys.modules[products.__name__] = products
    sys.path.insert(0, checkout)
    try:
        load_helpers(os.environ["SIMUMAX_HELPERS"])
        import megatron.legacy.fused_kernels
        import megatron.training.training as training

        # Asks a compiler for its version, and compiles nothing.
        megatron.legacy.fused_kernels.load = lambda _: None
        log, logged = training.training_log, []

        def log_and_stop(*given, **options):
            answer = log(*given, **options)
            logged.append(answer)
            if len(logged) == ITERATIONS:
                peaks = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
                finish({f"peak {name}, rank {rank}": {"value": peak / 2**20} for name, peak in peaks.items()})
            return answer

        training.training_log = log_and_stop
        script = os.path.join(checkout, "pretrain_gpt.py")
        sys.argv = [script, *arguments(case)]
        runpy.run_path(script, run_name="__main__")
        finish({f"rank {rank}": {"error": "ended before the last iteration"}})
    except BaseException as error:
        traceback.print_exc()
        finish({f"rank {rank}": {"error": f"{type(error).__name__}: {error}"[:200]}})


def main():
    checkout, case, results, *ranks = sys.argv[1:]
    if os.environ.get("SIMUMAX_RANK"):
        run(checkout, case, results, int(os.environ["SIMUMAX_RANK"]))
    found = {}
    helpers = compile_helpers(checkout)
    for rank in ranks or range(RANKS):
        part = os.path.join(tempfile.mkdtemp(), "rank.json")
        command = [sys.executable, __file__, checkout, case, part]
        subprocess.run(command, env={**os.environ, "SIMUMAX_RANK": str(rank), "SIMUMAX_HELPERS": helpers}, check=False)
        if os.path.exists(part):
            with open(part) as file:
                found.update(json.load(file))
        else:
            found[f"rank {rank}"] = {"error": "the process ended"}
    with open(results, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
