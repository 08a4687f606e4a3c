"""Measures: changes of a training job that lower its use of GPU memory, made without changing its script.

Each module of this package is one measure, which patches PyTorch before the script uses it:

    fused                   optimizers with fused kernels
    foreach-off             optimizers and clipping parameter by parameter
    early-zero-grad         gradients freed right after the step of the optimizer
    step-in-backward        the step of each parameter as soon as its gradient exists
    chunked-cross-entropy   cross entropy in chunks of rows
    checkpointing           activations of blocks computed again in the backward pass
    host-activations        saved activations in host memory
    sdpa                    attention of Hugging Face models by scaled_dot_product_attention
    autocast                forward passes in bfloat16
    bfloat16                parameters in bfloat16
    host-optimizer          state and step of the optimizer in host memory
    host-parameters         parameters, gradients and state of the optimizer in host memory
    fsdp                    parameters, gradients and state of the optimizer divided among GPUs
    adafactor               Adafactor in place of Adam
    adam8bit                Adam with 8-bit state
    micro-batches           batches in parts, with accumulated gradients
    batch-size              DataLoaders with another batch size
    lora                    low-rank adapters in place of all parameters
    compile                 torch.compile

Three more modules are what several measures share: `common`, `blocks` and `sharding`. The modules import nothing but
these and the standard library, and no two of them define the same name, so that their sources, behind those of the
shared ones, can be joined into one file.
"""

import importlib

# In the order in which they must be installed: a later one may rely on what an earlier one has patched.
NAMES = (
    "fused",
    "foreach-off",
    "early-zero-grad",
    "step-in-backward",
    "chunked-cross-entropy",
    "checkpointing",
    "host-activations",
    "sdpa",
    "autocast",
    "bfloat16",
    "host-optimizer",
    "host-parameters",
    "fsdp",
    "adafactor",
    "adam8bit",
    "micro-batches",
    "batch-size",
    "lora",
    "compile",
)


def install(torch, wanted, report):
    """Installs measures, given as on the command line (`["fused", "checkpointing=2"]`), in the order of `NAMES`.

    `report(name, applied, text)` is called once it is known how often a measure could be applied, with 0 and the
    reason if it could not be.
    """
    options = {}
    for text in wanted:
        name, _, option = text.partition("=")
        if name not in NAMES:
            raise ValueError(f"unknown measure: {name}")
        options[name] = option
    for name in NAMES:
        if name in options:
            measure = load(name)
            measure.install(torch, options[name] or measure.OPTION, _report_of(name, report))


def load(name):
    """The module of a measure."""
    return importlib.import_module("." + name.replace("-", "_"), __name__)


def _report_of(name, report):
    def report_of_measure(applied, text):
        report(name, applied, text)

    return report_of_measure
