"""Hugging Face models with "eager" attention use `scaled_dot_product_attention`, which does not keep attention weights.

Takes less time, not more. Attention dropout draws other random numbers.
"""

import weakref

from .common import Tally, after_step, watch_forwards

NAME = "sdpa"
TITLE = "Attention without stored weights"
CHANGES = "rounding"
NEEDS = "transformers"
OPTION = ""
CODE = "model.set_attn_implementation('sdpa')"


def install(torch, option, report):
    """Switches the models inside each outermost module before its first forward."""
    tally = Tally(report)
    seen = weakref.WeakSet()
    steps = []

    def watcher(module, forward, args, kwargs):
        if module not in seen:
            seen.add(module)
            for model in module.modules():
                if hasattr(model, "config") and any(kind.__name__ == "PreTrainedModel" for kind in type(model).__mro__):
                    _switch_attention(model, tally, report)
        return forward(*args, **kwargs)

    def stepped(_optimizer):
        steps.append(True)
        if len(steps) == 3:
            stop_watching()
            stop_counting()

    stop_watching = watch_forwards(torch, watcher)
    stop_counting = after_step(torch, stepped)


def _switch_attention(model, tally, report):
    """Switches one model, with the models inside it, if its attention is eager."""
    name = type(model).__name__
    implementation = getattr(model.config, "_attn_implementation", None)
    if implementation != "eager":
        if implementation is not None and not tally.counts:
            report(0, f"the attention of {name} is {implementation}")
        return
    if getattr(model.config, "output_attentions", False):
        return report(0, f"{name} returns attention weights (output_attentions)")
    if not getattr(model, "_supports_sdpa", False):
        return report(0, f"{name} does not support sdpa")
    if hasattr(model, "set_attn_implementation"):
        try:
            model.set_attn_implementation("sdpa")
        except (ImportError, ValueError) as error:
            return report(0, str(error))
    elif getattr(model, "_supports_attention_backend", False):
        # transformers 4.48 and later look the function up in each forward.
        model.config._attn_implementation = "sdpa"
    if model.config._attn_implementation != "sdpa":
        return report(0, f"the attention of {name} is chosen when it is made")
    tally.add(name)
