"""Hugging Face models are frozen, and low-rank adapters of their linear layers are trained instead (LoRA).

Gradients and the state of the optimizer exist for the adapters alone. Steps take less time.
"""

import importlib
import weakref

from .common import params_argument, optimizer_classes, wrap, wrap_constructors

NAME = "lora"
TITLE = "LoRA of rank {option}"
CHANGES = "training"
NEEDS = "peft"
OPTION = "8"
CODE = "model = peft.get_peft_model(model, peft.LoraConfig(r={option}, target_modules='all-linear'))"

# New layers for a task, which a pretrained model has no values for.
LORA_HEADS = ("classifier", "score", "qa_outputs")


def install(torch, option, report):
    """Adds adapters to a model when the first optimizer of its parameters is made."""
    _Lora(torch, int(option), report)


class _Lora:
    """Knows the modules whose parameters the script has asked for."""

    def __init__(self, torch, rank, report):
        self.torch = torch
        self.rank = rank
        self.report = report
        self.modules = weakref.WeakSet()
        self.is_done = False
        wrap(torch.nn.Module, "named_parameters", self._named_parameters)
        wrap_constructors(optimizer_classes(torch), self._construct)

    def _named_parameters(self, original):
        def named_parameters(module, *args, **kwargs):
            if not self.is_done:
                self.modules.add(module)
            return original(module, *args, **kwargs)

        return named_parameters

    def _construct(self, optimizer, arguments, construct):
        if self.is_done:
            return construct()
        self.is_done = True
        given = params_argument(self.torch, arguments)
        model = self._model(given)
        reason = self._reason(model)
        if reason:
            self.report(0, reason)
            return construct()
        try:
            adapters = self._add_adapters(model)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            self.report(0, f"no adapters can be added to {type(model).__name__}: {error}")
            return construct()
        construct(params=_lora_params(self.torch, arguments["params"], adapters))
        self.report(len(adapters), f"{len(adapters) // 2} linear layers of {type(model).__name__}")

    def _model(self, given):
        """The Hugging Face model with most of the given parameters, the outermost of several."""
        wanted = {id(parameter) for parameter in given}
        best, most = None, 0
        for root in list(self.modules):
            for module in root.modules():
                if any(kind.__name__ == "PreTrainedModel" for kind in type(module).__mro__):
                    count = sum(id(parameter) in wanted for parameter in module.parameters())
                    if count > most or count == most and best is not None and best in set(module.modules()):
                        best, most = module, count
        return best if most else None

    def _reason(self, model):
        """Why a model is left as it is."""
        if model is None:
            return "no Hugging Face model has the parameters of the optimizer"
        if any("lora_" in name for name, _ in model.named_parameters()):
            return "the model has adapters already"
        wrappers = ("DistributedDataParallel", "FullyShardedDataParallel")
        if any(type(root).__name__ in wrappers for root in self.modules):
            return "the model is wrapped for several processes already"
        return ""

    def _add_adapters(self, model):
        """Adds adapters and freezes all else but new heads; returns what was added."""
        peft = importlib.import_module("peft")
        config = peft.LoraConfig(r=self.rank, lora_alpha=2 * self.rank, target_modules="all-linear")
        before = {id(parameter) for parameter in model.parameters()}
        heads = [module for name, module in model.named_children() if name in LORA_HEADS]
        trained = [p for head in heads for p in head.parameters() if p.requires_grad]
        peft.inject_adapter_in_model(config, model)
        for parameter in trained:
            parameter.requires_grad_(True)
        return [parameter for parameter in model.parameters() if id(parameter) not in before]


def _lora_params(torch, params, adapters):
    """The parameters or groups for the optimizer: those of the script without the frozen ones, and the adapters."""
    params = list(params)
    if not isinstance(params[0], dict):
        named = isinstance(params[0], tuple)
        kept = [item for item in params if (item[1] if named else item).requires_grad]
        return kept + ([(f"adapter{index}", p) for index, p in enumerate(adapters)] if named else adapters)
    groups = []
    for group in params:
        of_group = [group["params"]] if isinstance(group["params"], torch.Tensor) else list(group["params"])
        groups.append({**group, "params": [parameter for parameter in of_group if parameter.requires_grad]})
    groups[0]["params"] = groups[0]["params"] + adapters
    return groups
