"""Runs one benchmark script of Liger-Kernel, and writes down the peaks that it measures.

    python liger.py CHECKOUT GROUP RESULTS.json

The script runs as it is: first the times, of which only the calls are made, a few each (what they leave in memory counts
for what follows), then memory. A case that raises is noted, and the others go on.
"""

import json
import os
import runpy
import sys
import tempfile
import traceback

checkout, group, results = sys.argv[1:4]
FILES = {
    "fused_linear_grpo_loss_sequence": "grpo_loss",
    "fused_linear_grpo_loss_token": "grpo_loss",
    "fused_linear_cpo_loss": "cpo_loss",
    "fused_linear_orpo_loss": "orpo_loss",
    "fused_linear_simpo_loss": "simpo_loss",
    "tiled_geglu": "tiled_mlp",
    "tiled_swiglu": "tiled_mlp",
}
folder = os.path.join(checkout, "benchmark", "scripts")
script = os.path.join(folder, f"benchmark_{FILES.get(group, group)}.py")
# The scripts ask for the version of the package, which is not installed.
metadata = tempfile.mkdtemp()
os.makedirs(os.path.join(metadata, "liger_kernel-0.dist-info"))
with open(os.path.join(metadata, "liger_kernel-0.dist-info", "METADATA"), "w") as file:
    file.write("Metadata-Version: 2.1\nName: liger-kernel\nVersion: 0\n")
sys.path[:0] = [folder, os.path.join(checkout, "src"), checkout, os.path.join(checkout, "benchmark"), metadata]
sys.argv = [script]

import triton  # noqa: E402
import utils  # noqa: E402

CALLS = 3
found = {}


def write():
    with open(results, "w") as file:
        json.dump(found, file)


def do_bench(function, *_, grad_to_none=None, quantiles=None, **__):
    for _ in range(CALLS):
        for tensor in grad_to_none or ():
            tensor.grad = None
        function()
    return [1.0] * len(quantiles) if quantiles and len(quantiles) > 1 else 1.0


def run_benchmarks(
    bench_test_fn,
    kernel_name,
    metric_name,
    metric_unit,
    x_name,
    x_label,
    x_values,
    kernel_providers,
    kernel_operation_modes=(None,),
    extra_benchmark_configs=None,
    overwrite=False,
):
    """In the order of the script's own function."""
    for config in extra_benchmark_configs:
        for mode in kernel_operation_modes:
            for provider in kernel_providers:
                for x in x_values:
                    case = utils.SingleBenchmarkRunInput(
                        x=x, kernel_provider=provider, kernel_operation_mode=mode, extra_benchmark_config=config
                    )
                    try:
                        value = {"value": float(bench_test_fn(case).y_50)}
                    except Exception as error:
                        value = {"error": f"{type(error).__name__}: {error}"[:200]}
                    if metric_name == "memory" and kernel_name == group:
                        text = json.dumps(config, cls=utils.CustomEncoder)
                        found[" | ".join([provider, mode or "", f"{x_name}={x}", text])] = value
                        write()


triton.testing.do_bench = do_bench
utils.run_benchmarks = run_benchmarks
try:
    runpy.run_path(script, run_name="__main__")
except BaseException as error:
    traceback.print_exc()
    found["*"] = {"error": f"{type(error).__name__}: {error}"[:200]}
write()
