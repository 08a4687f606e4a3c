"""Python objects, and shapes, that the processes of a job send each other, on a virtual GPU.

`send_object_list`, `recv_object_list` and `broadcast_object_list` send what `pickle` makes of the objects, with NCCL if
that is the backend of the group. No process of a virtual GPU has the memory of another, so that the bytes take the
store of the process group. Pipeline schedules tell the next stage the shapes of activations in this way
(torch/distributed/pipelining/stage.py, `_shape_inference`).
"""

import datetime
import inspect
import pickle

from ..patching import bound, replace
from . import shapes

# Longest wait for objects of another process, in seconds.
PATIENCE = 300

_counts = {}


def install(torch):
    """Wraps the functions of `torch.distributed` that send objects from one process to others."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    from torch.distributed import distributed_c10d as module

    def wrap(name, wrapper):
        replace(module, name, wrapper)
        if hasattr(distributed, name):
            setattr(distributed, name, getattr(module, name))

    wrap("send_object_list", lambda original: _sending(module, original))
    wrap("recv_object_list", lambda original: _receiving(torch, module, original))
    wrap("broadcast_object_list", lambda original: _broadcasting(torch, module, original))
    wrap("send", lambda original: _sending_shapes(torch, module, original))
    wrap("recv", lambda original: _receiving_shapes(torch, module, original))


def _uses_nccl(module, group):
    return "nccl" in module.get_backend(group)


def _key(module, group, source, target):
    """The name of the next message of these processes, by their ranks in the group."""
    name = module._get_process_group_name(group or module._get_default_group())
    place = f"xmem/objects/{name}/{source}/{target}"
    _counts[place] = _counts.get(place, 0) + 1
    return f"{place}/{_counts[place]}"


def _rank_in(module, group, rank, group_rank):
    """The rank in the group, of which either that or the global one is given."""
    if rank is None or group is None:
        return group_rank if rank is None else rank
    return module.get_group_rank(group, rank)


def _send(module, key, objects):
    module._get_default_store().set(key, pickle.dumps(objects))


def _content(module, key):
    """The bytes of a message, once another process has sent it."""
    store = module._get_default_store()
    store.wait([key], datetime.timedelta(seconds=PATIENCE))
    return store.get(key)


def fill(torch, objects, content, device):
    """Fills a list with objects from their bytes, and allocates what `recv_object_list` allocates for these and their sizes."""
    if device is None:
        device = torch.device("cuda", torch.cuda.current_device())
    _sizes = torch.empty(len(objects), dtype=torch.long, device=device)
    _bytes = torch.empty(len(content), dtype=torch.uint8, device=device)
    objects[:] = pickle.loads(content)


def _sending(module, original):
    def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, **others):
        if _uses_nccl(module, group):
            source, target = module.get_rank(group), _rank_in(module, group, dst, group_dst)
            _send(module, _key(module, group, source, target), object_list)
        if group_dst is not None:
            others["group_dst"] = group_dst
        return original(object_list, dst, group, device, **others)

    return send_object_list


def _receiving(torch, module, original):
    def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, **others):
        source = _rank_in(module, group, src, group_src)
        if source is None or not _uses_nccl(module, group):
            if group_src is not None:
                others["group_src"] = group_src
            return original(object_list, src, group, device, **others)
        key = _key(module, group, source, module.get_rank(group))
        fill(torch, object_list, _content(module, key), device)
        return source if group is None else module.get_global_rank(group, source)

    return recv_object_list


def _broadcasting(torch, module, original):
    def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
        source = _rank_in(module, group, src, group_src) or 0
        if _uses_nccl(module, group) and module.get_world_size(group) > 1:
            key = _key(module, group, source, "all")
            if module.get_rank(group) != source:
                return fill(torch, object_list, _content(module, key), device)
            _send(module, key, object_list)
        others = {} if group_src is None else {"group_src": group_src}
        return original(object_list, 0 if src is None and group_src is None else src, group, device, **others)

    return broadcast_object_list


def _sending_shapes(torch, module, original):
    names = inspect.signature(original)

    def send(*args, **kwargs):
        given = bound(names, args, kwargs).arguments
        group, tensor = given["group"], given["tensor"]
        if _uses_nccl(module, group) and shapes.are_in(tensor):
            target = _rank_in(module, group, given["dst"], given.get("group_dst"))
            _send(module, _key(module, group, module.get_rank(group), f"{target}/shapes"), shapes.read(torch, tensor))
        return original(*args, **kwargs)

    return send


def _receiving_shapes(torch, module, original):
    names = inspect.signature(original)

    def recv(*args, **kwargs):
        given = bound(names, args, kwargs).arguments
        group, tensor = given["group"], given["tensor"]
        result = original(*args, **kwargs)
        source = _rank_in(module, group, given["src"], given.get("group_src"))
        if source is not None and _uses_nccl(module, group) and shapes.are_in(tensor):
            key = _key(module, group, source, f"{module.get_rank(group)}/shapes")
            shapes.write(torch, tensor, pickle.loads(_content(module, key)))
        return result

    return recv
