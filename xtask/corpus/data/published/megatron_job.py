"""What the drivers of Megatron-LM's scripts share. They run as they are, as one rank of their job (`xmem run --ranks`), but for
parts that would be compiled at their start."""

import os
import runpy
import subprocess
import sys
import sysconfig
import types


def prepare(checkout):
    """Makes Megatron importable, and has nothing compiled but its loops over texts, once."""
    sys.path.insert(0, checkout)
    _compile_helpers(os.path.join(checkout, "megatron", "core", "datasets"))
    import megatron.core.datasets.utils

    megatron.core.datasets.utils.compile_helpers = lambda: None


def _compile_helpers(folder):
    import torch

    library = os.path.join(folder, "helpers_cpp" + sysconfig.get_config_var("EXT_SUFFIX"))
    if os.path.exists(library):
        return
    headers = [os.path.join(os.path.dirname(torch.__file__), "include"), sysconfig.get_paths()["include"]]
    part = f"{library}.{os.getpid()}"
    options = ["-O1", "-shared", "-fPIC", "-std=c++17", *(f"-I{header}" for header in headers)]
    subprocess.run(["g++", *options, os.path.join(folder, "helpers.cpp"), "-o", part], check=True)
    os.replace(part, library)


def add_products():
    """Apex's products that add to the gradients where they are: nothing is allocated."""
    products = types.ModuleType("fused_weight_gradient_mlp_cuda")
    products.wgrad_gemm_accum_fp32 = products.wgrad_gemm_accum_fp16 = lambda *_: None
    sys.modules[products.__name__] = products


def run(script, arguments):
    """Runs a script as the main program."""
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


def end():
    """Ends the process, whose group would wait for its other ranks."""
    sys.stdout.flush()
    os._exit(0)
