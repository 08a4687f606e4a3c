"""Cross entropy over many classes is computed some rows at a time, and again in the backward pass.

Neither the logarithms of all probabilities nor other temporary tensors the size of the logits are kept. Costs the time
of computing the loss (not the logits) twice.
"""

from .common import wrap

NAME = "chunked-cross-entropy"
TITLE = "Cross entropy in chunks"
CHANGES = "rounding"
NEEDS = ""
OPTION = ""
CODE = "parts = zip(logits.chunk(8), y.chunk(8)); loss = sum(checkpoint(F.cross_entropy, *part) for part in parts) / 8"

CHUNKED_ROWS = 1024
CHUNKED_CLASSES = 4096
CHUNKED_PARTS = 8


def install(torch, option, report):
    """Replaces `torch.nn.functional.cross_entropy`, which `nn.CrossEntropyLoss` and transformers call."""
    function = _chunked_function(torch)
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)
    reported = []

    def wrapper_of(original):
        def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                          reduction="mean", label_smoothing=0.0):
            if is_compiling() or size_average is not None or reduce is not None or reduction not in ("mean", "sum") \
                    or label_smoothing != 0 or not _chunked_applies(torch, input, target, weight):
                return original(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
            if not reported:
                reported.append(True)
                report(1, f"{input.shape[0]} rows of {input.shape[1]} classes in {CHUNKED_PARTS} chunks")
            to_float = _chunked_under_autocast(torch, input.device.type)
            total = function.apply(input, target, weight, ignore_index, original, to_float)
            if reduction == "sum":
                return total
            return total / _chunked_divisor(target, weight, ignore_index).to(total.dtype)

        return cross_entropy

    wrap(torch.nn.functional, "cross_entropy", wrapper_of)


def _chunked_applies(torch, logits, target, weight):
    """Returns whether the loss is that of training, with many rows of many classes and the indices of classes."""
    return (
        type(logits) is torch.Tensor and type(target) is torch.Tensor
        and (weight is None or not weight.requires_grad)
        and logits.requires_grad and torch.is_grad_enabled() and logits.dim() == 2 and target.dim() == 1
        and logits.shape[0] >= CHUNKED_ROWS and logits.shape[1] >= CHUNKED_CLASSES
        and logits.is_floating_point() and not target.is_floating_point()
    )


def _chunked_under_autocast(torch, device_type):
    """Returns whether autocast would compute the loss in float32 (aten/src/ATen/autocast_mode.h, `nll_loss`)."""
    if device_type == "cpu":
        return torch.is_autocast_cpu_enabled()
    return torch.is_autocast_enabled()


def _chunked_divisor(target, weight, ignore_index):
    """The divisor of the mean: the number of targets that are not ignored, or the sum of their weights."""
    kept = target[target != ignore_index]
    return kept.new_tensor(kept.numel()) if weight is None else weight[kept].sum()


def _chunked_function(torch):
    """The sum of the losses as a function with a gradient."""

    def parts(logits, target):
        return zip(logits.chunk(CHUNKED_PARTS), target.chunk(CHUNKED_PARTS))

    class ChunkedCrossEntropy(torch.autograd.Function):
        """Saves the logits alone."""

        @staticmethod
        def forward(ctx, logits, target, weight, ignore_index, cross_entropy, to_float):
            def loss(part, target):
                part = part.float() if to_float else part
                return cross_entropy(part, target, weight, ignore_index=ignore_index, reduction="sum")

            ctx.save_for_backward(logits, target)
            ctx.loss = loss
            with torch.no_grad():
                return sum(loss(part, targets) for part, targets in parts(logits, target))

        @staticmethod
        def backward(ctx, grad_total):
            logits, target = ctx.saved_tensors
            if torch.is_grad_enabled():
                # `create_graph=True`: the gradient must have one itself.
                (grad,) = torch.autograd.grad(ctx.loss(logits, target), logits, grad_total, create_graph=True)
                return grad, None, None, None, None, None
            grad = torch.empty_like(logits)
            for part, targets, grad_part in zip(
                logits.chunk(CHUNKED_PARTS), target.chunk(CHUNKED_PARTS), grad.chunk(CHUNKED_PARTS)
            ):
                with torch.enable_grad():
                    part = part.detach().requires_grad_()
                    total = ctx.loss(part, targets)
                grad_part.copy_(torch.autograd.grad(total, part, grad_total)[0])
            return grad, None, None, None, None, None

    return ChunkedCrossEntropy
