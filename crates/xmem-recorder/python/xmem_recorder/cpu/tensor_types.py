"""`torch.cuda.FloatTensor` and the like, which predate devices: classes that make tensors on the GPU, that
`Tensor.type` converts to, and that `isinstance` compares with."""

from .. import session
from ..patching import replace
from . import placement, places, redirected

NAMES = (
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
)


class TensorType(type):
    """The class of a class of CUDA tensors, whose `host` is that of the same tensors on the CPU."""

    is_cuda = True
    is_sparse = False

    def __call__(cls, *args, **kwargs):
        redirected.count("torch.cuda.FloatTensor and the like")
        kwargs.pop("device", None)
        if args and hasattr(args[0], "untyped_storage"):
            return placement.moves_to_device(args[0], lambda source: cls.host(source, *args[1:]))
        placement.use_device()
        return placement.made_on_device(cls.host(*args, **kwargs))

    def __instancecheck__(cls, value):
        return isinstance(value, cls.host) and places.looks_like_device(value)

    @property
    def dtype(cls):
        return cls.host.dtype

    @property
    def layout(cls):
        return cls.host.layout


def install(torch):
    """Replaces the classes in `torch.cuda`, and the function that makes one the default."""
    for name in NAMES:
        host = getattr(torch, name, None)
        if host is not None and hasattr(torch.cuda, name):
            setattr(torch.cuda, name, TensorType(name, (), {"__module__": "torch.cuda", "host": host}))

    def set_default_tensor_type(original):
        def set_type(kind):
            host = on_host(kind)
            if host is None:
                return original(kind)
            session.note("set_default_tensor_type: tensors are on the host until they are moved")
            return original(host)

        return set_type

    replace(torch, "set_default_tensor_type", set_default_tensor_type)


def on_host(kind):
    """The name or the class on the CPU of a name or a class of CUDA tensors; None for all others."""
    if isinstance(kind, TensorType):
        return kind.host
    if isinstance(kind, str) and kind.startswith("torch.cuda."):
        return "torch." + kind[len("torch.cuda.") :]
    return None
