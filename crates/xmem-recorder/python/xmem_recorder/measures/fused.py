"""Optimizers run as fused kernels, one for all parameters, without temporary tensors the size of the gradients.

Steps become faster, not slower.
"""

from .common import Tally, has_option, parameters_of, params_argument, wrap_constructors

NAME = "fused"
TITLE = "Fused optimizer"
CHANGES = "rounding"
NEEDS = ""
OPTION = ""
EXCLUDES = "foreach-off host-optimizer adafactor adam8bit"
CODE = "optimizer = Optimizer(model.parameters(), fused=True)"


def install(torch, option, report):
    """Passes `fused=True` to the constructors that have it."""
    classes = [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad]
    classes = [kind for kind in classes if has_option(kind, "fused")]
    tally = Tally(report)

    def construct_fused(optimizer, arguments, construct):
        reason = _fused_is_refused(arguments)
        if reason:
            report(0, reason)
            return construct()
        try:
            _fused_check(torch, optimizer, params_argument(torch, arguments))
            construct(fused=True)
        except RuntimeError as error:
            # Older releases check the parameters in the constructor.
            report(0, str(error))
            return construct(fused=None)
        tally.add(type(optimizer).__name__)
        _fused_check_at_first_step(torch, optimizer, report)

    wrap_constructors(classes, construct_fused)


def _fused_is_refused(arguments):
    """Why an optimizer is left as it is."""
    if arguments.get("fused") is not None:
        return "the optimizer is fused already" if arguments["fused"] else "the script asks for fused=False"
    for name in ("foreach", "capturable", "differentiable"):
        if arguments.get(name):
            return f"the script asks for {name}=True"
    return ""


def _fused_check(torch, optimizer, parameters):
    """Raises a RuntimeError where the fused kernels do not support a parameter.

    As `_device_dtype_check_for_fused` (torch/optim/optimizer.py), before the step rather than in it. Parameters may be
    on the CPU when the optimizer is made, and on a GPU at its first step.
    """
    supported = _fused_devices(torch)
    if isinstance(optimizer, torch.optim.Adagrad):
        supported = [device for device in supported if device != "cuda"]
    for parameter in parameters:
        if parameter.device.type not in supported:
            raise RuntimeError(f"fused {type(optimizer).__name__} does not support {parameter.device.type}")
        if not torch.is_floating_point(parameter):
            raise RuntimeError(f"fused kernels do not support parameters of {parameter.dtype}")
        if parameter.grad is not None and parameter.grad.is_sparse:
            raise RuntimeError("fused kernels do not support sparse gradients")


def _fused_devices(torch):
    """The types of devices with fused kernels (torch/utils/_foreach_utils.py)."""
    try:
        return list(torch.utils._foreach_utils._get_fused_kernels_supported_devices())
    except (AttributeError, TypeError):
        return ["cuda"]


def _fused_check_at_first_step(torch, optimizer, report):
    """Makes an optimizer an ordinary one at its first step if its gradients turn out to need that."""

    checked = []

    def before_step(optimizer, args, kwargs):
        # Hooks must not be removed while they run.
        if checked:
            return
        checked.append(True)
        try:
            _fused_check(torch, optimizer, parameters_of(optimizer))
        except RuntimeError as error:
            report(0, str(error))
            optimizer.defaults["fused"] = None
            for group in optimizer.param_groups:
                group["fused"] = None
            # Otherwise GradScaler leaves unscaling to the optimizer (torch/amp/grad_scaler.py, `step`).
            optimizer._step_supports_amp_scaling = False

    optimizer.register_step_pre_hook(before_step)
    if hasattr(optimizer, "register_load_state_dict_post_hook"):
        optimizer.register_load_state_dict_post_hook(_fused_after_loading)


def _fused_after_loading(optimizer):
    """A loaded state has the options of the optimizer that was saved, which may not have been fused."""
    optimizer._step_supports_amp_scaling = all(group.get("fused") for group in optimizer.param_groups)
