"""The places of the largest elements, where a virtual GPU does not know the elements.

They are assumed to be spread evenly over all places, as with a router that gives each expert the same number of
tokens; a share of the rows may have the same places (`assumptions`, `routing`).
"""

from . import assumptions, known

# Functions that return places, and the position of their argument `dim`.
POSITION_OF_DIM = {"argmax": 1, "argmin": 1, "argsort": 1, "max": 1, "min": 1, "sort": 1, "topk": 2}


def functions(torch):
    """The functions of torch, with their names."""
    return {
        getattr(owner, name): name
        for owner in (torch, torch.Tensor)
        for name in POSITION_OF_DIM
        if hasattr(owner, name)
    }


def choose(torch, name, args, kwargs, result):
    """Writes places into a result if the elements are unknown; returns whether it did."""
    if isinstance(result, torch.Tensor) and not name.startswith("arg"):
        # The largest element, without its place.
        return False
    places = result if isinstance(result, torch.Tensor) else result[1]
    elements = args[0] if args else kwargs.get("input")
    if not isinstance(elements, torch.Tensor) or not elements.is_cuda or elements.dim() == 0:
        return False
    if places.dtype is not torch.int64 or not places.numel():
        return False
    if places.nbytes > known.MAX_ASSUMED_BYTES or not places.is_contiguous():
        return False
    if known.state(elements) >= known.COUNTED:
        return False
    position = POSITION_OF_DIM[name]
    dim = kwargs.get("dim", args[position] if len(args) > position else -1)
    if type(dim) is not int:
        return False
    known.unrecorded(_write, torch, elements.shape[dim], dim, elements.dim(), places)
    known.keep(places, known.ROUTED)
    if places is not result:
        known.clear(result[0])
    return True


def _write(torch, count, dim, dims, places):
    target = known.alias(places)
    target = target.movedim(dim, -1) if places.dim() == dims else target.unsqueeze(-1)
    chosen = target.shape[-1]
    rows = target.numel() // chosen
    first = torch.arange(rows, device="cpu")[:, None] * chosen
    first[: round(rows * assumptions.share("routing"))] = 0
    spread = (first + torch.arange(chosen, device="cpu")) % count
    target.copy_(spread.view(target.shape))
