"""Runs a case of SimuMax's table as one of its eight ranks, and writes down the peaks that PyTorch counts.

    xmem run --virtual-gpu b200-180g --ranks 8 --rank 0 -- python simumax.py CHECKOUT GROUP RESULTS.json

CHECKOUT is Megatron-LM, whose `pretrain_gpt.py` runs. GROUP is a case such as `llama3_70b_l12_tp1_pp2_dp4_mbc4_cef`, whose name
states the model, the number of layers, the parallelism, the tokens of a sequence (4,096 if none are named) and the micro-batches.
The arguments are those of SimuMax's scripts. Three iterations, as in the table. Needs Transformer Engine.
"""

import json
import os
import re
import sys
import traceback

import megatron_job

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


checkout, case, results = sys.argv[1:4]
rank = int(os.environ["RANK"])
found = {}
# The workspaces of cuBLAS on Blackwell up to PyTorch 2.11, as in the container; since 2.12 they have 32 MiB.
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:2:16:8"
os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"


def finish():
    with open(results, "w") as file:
        json.dump(found, file)
    megatron_job.end()


def watch(training):
    """Ends the job once it has logged its iterations."""
    import torch

    log, logged = training.training_log, []

    def log_and_stop(*given, **options):
        answer = log(*given, **options)
        logged.append(answer)
        if len(logged) == ITERATIONS:
            peaks = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
            found.update({f"peak {name}, rank {rank}": {"value": peak / 2**20} for name, peak in peaks.items()})
            finish()
        return answer

    training.training_log = log_and_stop


megatron_job.add_products()
megatron_job.prepare(checkout)
try:
    import megatron.training.training

    watch(megatron.training.training)
    megatron_job.run(os.path.join(checkout, "pretrain_gpt.py"), arguments(case))
    found[f"rank {rank}"] = {"error": "ended before the last iteration"}
except BaseException as error:
    traceback.print_exc()
    found[f"rank {rank}"] = {"error": f"{type(error).__name__}: {error}"[:200]}
finish()
