"""Parameters sharded by FSDP2 (`torch.distributed.fsdp.fully_shard`), which several measures share.

A model is sharded as soon as the script moves it to the GPU, so that it is never there as a whole; or else before its
first training forward. Either way the script goes on as if nothing had happened: optimizers have the sharded
parameters, and states are saved and loaded as whole tensors.
"""

import atexit
import collections
import copy
import os
import random
import sys
import warnings
import weakref

from .blocks import classes_of_blocks
from .common import after_step, is_training, name_of, parameters_of, watch_forwards, wrap, wrap_clipping

# What launchers tell a process of its place. The script is not to know it: it is one for a single GPU.
PLACE_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK", "ROLE_RANK")


class ShardingProcesses:
    """The processes over which models are sharded: all of the job, or this one alone."""

    def __init__(self, torch, is_alone):
        self.torch = torch
        self.variables = {}
        if not is_alone and "RANK" in os.environ:
            names = [name for name in os.environ if name in PLACE_VARIABLES or name.startswith(("TORCHELASTIC_", "ROLE_"))]
            self.variables = {name: os.environ.pop(name) for name in names}
        self.rank = int(self.variables.get("RANK", 0))
        self.count = int(self.variables.get("WORLD_SIZE", 1))
        self.has_started = False
        if self.count > 1:
            self._choose_gpu(int(self.variables.get("LOCAL_RANK", 0)))

    def _choose_gpu(self, local_rank):
        """Shows this process its GPU only, which the script may call `cuda:0`."""
        shown = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = shown.split(",") if shown else []
        os.environ["CUDA_VISIBLE_DEVICES"] = names[local_rank] if local_rank < len(names) else str(local_rank)

    def show(self):
        """Tells the script its place, which it wants to know."""
        os.environ.update(self.variables)

    def start(self):
        """Makes the group of the processes; the script has none."""
        if self.has_started:
            return
        self.has_started = True
        distributed = self.torch.distributed
        backend = "cpu:gloo,cuda:nccl" if self.torch.cuda.is_available() else "gloo"
        if self.variables:
            os.environ.update(self.variables)
            try:
                distributed.init_process_group(backend)
            finally:
                for name in self.variables:
                    os.environ.pop(name, None)
        else:
            distributed.init_process_group(backend, store=distributed.HashStore(), rank=0, world_size=1)
        atexit.register(self._end)

    def _end(self):
        if self.torch.distributed.is_initialized():
            self.torch.distributed.destroy_process_group()

    def mesh(self, device_type):
        """All processes in a row."""
        self.start()
        if device_type == "cuda":
            self.torch.cuda.init()
        return self.torch.distributed.device_mesh.init_device_mesh(device_type, (self.count,))

    def send_from_first(self, tensors):
        """Gives tensors the values of the first process."""
        if self.count == 1:
            return
        self.start()
        for tensor in tensors:
            data = tensor.detach()
            sent = data.contiguous()
            self.torch.distributed.broadcast(sent, 0)
            if sent is not data:
                data.copy_(sent)

    def part_of_first(self, values):
        """The part of this process of a list of the first process, as long as that of each other one."""
        self.start()
        sent = self.torch.tensor(values, dtype=self.torch.int64)
        self.torch.distributed.broadcast(sent, 0)
        return sent[self.rank :: self.count][: len(values) // self.count].tolist()

    def draw_other_numbers(self):
        """Lets this process draw other random numbers than the first one: for batches, augmentation and dropout."""
        if self.rank == 0:
            return
        seed = (self.torch.initial_seed() + self.rank) % 2**32
        self.torch.manual_seed(seed)
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed)


class ShardedModels:
    """Shards the models of a script."""

    def __init__(self, torch, processes, policy, report):
        """`policy` makes the `offload_policy` of `fully_shard`."""
        self.torch = torch
        self.processes = processes
        self.policy = policy
        # There is no other memory to offload to.
        self.needs_gpu = policy is torch.distributed.fsdp.CPUOffloadPolicy
        self.report = report
        self.counts = {}
        self.note = ""
        self.is_off = False
        self.meshes = {}
        self.optimizers = weakref.WeakSet()
        self.left = weakref.WeakSet()
        # The sharded parameters by the addresses of those that they replace, with those.
        self.replaced = {}
        self.is_moving = False
        watch_forwards(torch, self._forward)
        self.stop_counting = after_step(torch, self._stepped)
        wrap(torch.optim.Optimizer, "add_param_group", self._add_param_group)
        wrap(torch.distributed, "init_process_group", self._init_process_group)
        for name in ("to", "cuda"):
            wrap(torch.nn.Module, name, self._move)
        wrap_clipping(torch, "clip_grad_norm_", self._clip)
        wrap_clipping(torch, "clip_grad_value_", self._clip)

    def refuse(self, reason):
        """Ends the measure."""
        self.is_off = True
        if self.processes.count > 1:
            warnings.warn(f"parameters are not sharded, and each process trains alone: {reason}", stacklevel=2)
        self.report(0, reason)

    # When models are sharded.

    def _move(self, original):
        def move(module, *args, **kwargs):
            if self.is_off or self.is_moving or not self._is_moved_to_gpu(original.__name__, args, kwargs):
                return original(module, *args, **kwargs)
            self.is_moving = True
            try:
                if not self._is_worth_sharding(module):
                    return original(module, *args, **kwargs)
                if original.__name__ == "to":
                    _, dtype, _, memory_format = self.torch._C._nn._parse_to(*args, **kwargs)
                    options = {"dtype": dtype, "memory_format": memory_format}
                    options = {name: value for name, value in options.items() if value is not None}
                    if options:
                        original(module, **options)
                self._shard(module, "cuda")
                return module
            finally:
                self.is_moving = False

        return move

    def _is_moved_to_gpu(self, name, args, kwargs):
        if name == "cuda":
            return True
        try:
            device = self.torch._C._nn._parse_to(*args, **kwargs)[0]
        except (RuntimeError, TypeError):
            return False
        return device is not None and device.type == "cuda"

    def _is_worth_sharding(self, module):
        """Returns whether a module on the host is most probably one that will be trained, as a whole."""
        parameters = list(module.parameters())
        return (
            any(parameter.requires_grad for parameter in parameters)
            and all(parameter.device.type == "cpu" for parameter in parameters)
            and not self._reason(module, has_optimizers=True)
            and bool(classes_of_blocks(self.torch, [module]))
        )

    def _forward(self, module, forward, args, kwargs):
        if not self.is_off and module not in self.left and is_training(self.torch, module):
            self.left.add(module)
            if any(parameter.requires_grad for parameter in self._open_parameters(module)):
                device_type = self._open_parameters(module)[0].device.type
                reason = self._reason(module, has_optimizers=bool(self.optimizers))
                # With PyTorch 2.6, FSDP fails on the CPU, whose streams had no events.
                if device_type == "cpu" and (self.needs_gpu or not hasattr(self.torch.cpu.Stream, "record_event")):
                    reason = "the model is on the CPU"
                if reason:
                    self.refuse(reason)
                else:
                    self._shard(module, device_type)
        return forward(*args, **kwargs)

    def _is_sharded(self, module):
        """Returns whether this measure has sharded a module."""
        return any(getattr(inner, "is_sharded_whole", False) for inner in module.modules())

    def _reason(self, module, has_optimizers):
        """Why a module is not sharded."""
        torch = self.torch
        wrappers = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine")
        for inner in module.modules():
            if type(inner).__name__ in wrappers:
                return f"the model is in a {type(inner).__name__}"
            if isinstance(inner, torch.distributed.fsdp.FSDPModule) and not self.counts:
                return "the model is sharded already"
        parameters = self._open_parameters(module)
        if not has_optimizers:
            return "no optimizer of PyTorch has the parameters"
        if any(torch.nn.parameter.is_lazy(parameter) for parameter in parameters):
            return "there are parameters without a shape"
        if any(type(p) not in (torch.nn.Parameter, torch.Tensor) for p in parameters):
            return "the parameters are not ordinary tensors"
        if any(p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None) for p in parameters):
            return "parameters have hooks of the script"
        if self._are_shared_by_blocks(module):
            return "blocks share parameters with others"
        return ""

    def _are_shared_by_blocks(self, root):
        """Returns whether a parameter is in a block and elsewhere: FSDP would make two of it."""
        blocks = sum(classes_of_blocks(self.torch, [root]), [])
        uses = [id(p) for _, p in root.named_parameters(remove_duplicate=False)]
        inside = [{id(p) for p in block.parameters()} for block in blocks]
        of_blocks = [[id(p) for _, p in block.named_parameters(remove_duplicate=False)] for block in blocks]
        return any(uses.count(p) > own.count(p) for known, own in zip(inside, of_blocks) for p in known)

    # How a model is sharded.

    def _shard(self, root, device_type):
        """Shards the blocks of a module, and then the rest of it."""
        if device_type not in self.meshes:
            self.meshes[device_type] = self.processes.mesh(device_type)
        is_open = not self._is_sharded(root)
        classes = classes_of_blocks(self.torch, [root]) if is_open else []
        self.processes.send_from_first([*self._open_parameters(root), *root.buffers()])
        for block in sum(classes, []):
            self._count(block)
            self._shard_one(block, self.meshes[device_type])
        if not classes:
            self._count(root)
        self._shard_one(root, self.meshes[device_type])
        root.is_sharded_whole = True
        for module in root.modules():
            is_sharded = any(hasattr(parameter, "full_tensor") for parameter in module.parameters(recurse=False))
            if is_sharded and not getattr(module, "has_whole_states", False):
                module.has_whole_states = True
                module._register_state_dict_hook(_whole_state)
                module._register_load_state_dict_pre_hook(_sharded_state, with_module=True)
        self.processes.draw_other_numbers()
        self._tell()

    def _shard_one(self, module, mesh):
        """Shards the parameters of a module that are not sharded yet.

        The old ones lose their memory, which the script may have kept; optimizers get the new ones.
        """
        before = dict(module.named_parameters(remove_duplicate=False))
        self.torch.distributed.fsdp.fully_shard(module, mesh=mesh, offload_policy=self.policy())
        after = dict(module.named_parameters(remove_duplicate=False))
        pairs = {id(old): (old, after[name]) for name, old in before.items() if old is not after[name]}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["params"] = [pairs.get(id(p), (p, p))[1] for p in group["params"]]
            for old, new in pairs.values():
                if old in optimizer.state:
                    optimizer.state[new] = _sharded_values(optimizer.state.pop(old), new)
        for old, _ in pairs.values():
            old.data = old.data.new_empty(0)
            old.grad = None
        self.replaced.update(pairs)

    def _open_parameters(self, module):
        """The parameters that are not sharded yet."""
        return [parameter for parameter in module.parameters() if not hasattr(parameter, "full_tensor")]

    def _count(self, module):
        name = name_of(module)
        self.counts[name] = self.counts.get(name, 0) + 1

    def _tell(self):
        count = self.processes.count
        over = f" over {count} GPUs" if count > 1 else ""
        names = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        self.report(sum(self.counts.values()), f"{names}{over}{self.note}")

    def tell_also(self, note):
        """Adds a note to the report."""
        is_new = self.note != f"; {note}"
        self.note = f"; {note}"
        if is_new and self.counts and not self.is_off:
            self._tell()

    # What the script does with the parameters.

    def _add_param_group(self, original):
        def add_param_group(optimizer, param_group):
            is_new = optimizer not in self.optimizers
            given = param_group.get("params") if isinstance(param_group, dict) else None
            if self.replaced and given is not None and not isinstance(given, self.torch.Tensor):
                param_group["params"] = [self._current(item) for item in given]
            result = original(optimizer, param_group)
            self.optimizers.add(optimizer)
            if is_new and hasattr(optimizer, "register_state_dict_post_hook"):
                optimizer.register_state_dict_post_hook(_whole_state_of_optimizer)
                optimizer.register_load_state_dict_pre_hook(_sharded_state_of_optimizer)
            return result

        return add_param_group

    def _current(self, item):
        """The sharded parameter in place of one that it has replaced; with its name, if it has one."""
        if isinstance(item, tuple):
            return (item[0], self._current(item[1]))
        return self.replaced.get(id(item), (item, item))[1]

    def _clip(self, original):
        def clip(parameters, *args, **kwargs):
            tensors = [parameters] if isinstance(parameters, self.torch.Tensor) else list(parameters)
            return _whole(original([self._current(tensor) for tensor in tensors], *args, **kwargs))

        return clip

    def _stepped(self, optimizer):
        """After the first step: a parameter that is not sharded is another one on each GPU."""
        if self.is_off or not self.counts:
            return
        self.stop_counting()
        sharded = self.torch.distributed.tensor.DTensor
        if any(p.grad is not None and not isinstance(p, sharded) for p in parameters_of(optimizer)):
            self.refuse(f"{type(optimizer).__name__} has parameters that no sharded module has")

    def _init_process_group(self, original):
        def init_process_group(*args, **kwargs):
            if not self.processes.has_started and not self.is_off:
                self.processes.show()
                self.refuse("the script makes a process group itself")
            return original(*args, **kwargs)

        return init_process_group


def _whole(value):
    """The whole tensor, if a value is sharded."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def _whole_on_host(value):
    return value.detach().full_tensor().cpu() if hasattr(value, "full_tensor") else value


def _sharded_like(value, parameter):
    """The part of this process of a whole tensor, as it has that of a parameter."""
    if hasattr(value, "full_tensor") or value.shape != parameter.shape or not value.shape:
        return value
    mesh, spec = parameter.device_mesh, copy.copy(parameter._spec)
    parts, rank = value.detach().chunk(mesh.size(), 0), mesh.get_local_rank()
    part = parts[rank] if rank < len(parts) else value.detach()[:0]
    spec.tensor_meta = spec.tensor_meta._replace(dtype=value.dtype)
    part = part.to(parameter.to_local().device, copy=True).contiguous()
    return type(parameter.data)(part, spec, requires_grad=False)


def _sharded_values(state, parameter):
    """The state of a parameter with the tensors of its shape sharded."""
    if not hasattr(parameter, "full_tensor"):
        return state
    return {name: _sharded_like(value, parameter) if hasattr(value, "shape") else value for name, value in state.items()}


def _whole_state(module, state, prefix, _metadata):
    """After a module has added its parameters to a state: those that are sharded are gathered, and put on the host."""
    gathered = _gathered_in(state)
    for name, parameter in module.named_parameters(recurse=False):
        if prefix + name in state:
            # One tensor of a parameter that has several names.
            if id(parameter) not in gathered:
                gathered[id(parameter)] = _whole_on_host(state[prefix + name])
            state[prefix + name] = gathered[id(parameter)]


# The tensors of states that exist, by the addresses of these and of the parameters.
_gathered = {}


def _gathered_in(state):
    """The gathered tensors of a state, by the addresses of their parameters."""
    if not isinstance(state, collections.OrderedDict):
        return {}
    key = id(state)
    if key not in _gathered:
        _gathered[key] = (weakref.ref(state, lambda _: _gathered.pop(key, None)), {})
    return _gathered[key][1]


def _sharded_state(module, state, prefix, *_):
    """Before a module loads its parameters from a state of whole tensors."""
    for name, parameter in module.named_parameters(recurse=False):
        if prefix + name in state and hasattr(parameter, "full_tensor"):
            state[prefix + name] = _sharded_like(state[prefix + name], parameter)


def _whole_state_of_optimizer(_optimizer, state_dict):
    state = {
        key: {name: _whole_on_host(value) for name, value in of_parameter.items()}
        if isinstance(of_parameter, dict)
        else of_parameter
        for key, of_parameter in state_dict["state"].items()
    }
    return {**state_dict, "state": state}


def _sharded_state_of_optimizer(optimizer, state_dict):
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    keys = [key for group in state_dict["param_groups"] for key in group["params"]]
    state = dict(state_dict["state"])
    for key, parameter in zip(keys, parameters):
        if isinstance(state.get(key), dict):
            state[key] = _sharded_values(state[key], parameter)
    return {**state_dict, "state": state}


def divide_batches(torch, processes, told):
    """Gives each process its part of what samplers draw in random order; `told()` is called when one does."""
    sampler = torch.utils.data.RandomSampler

    def of_iter(original):
        def iterate(self):
            told()
            return iter(processes.part_of_first(list(original(self))))

        return iterate

    wrap(sampler, "__iter__", of_iter)
    wrap(sampler, "__len__", lambda original: lambda self: original(self) // processes.count)


def save_once(torch, processes):
    """Lets the first process alone write what all of them save by `torch.save`."""

    def of_save(original):
        def save(obj, f, *args, **kwargs):
            return original(obj, f if processes.rank == 0 else os.devnull, *args, **kwargs)

        return save

    wrap(torch, "save", of_save)


def lacks_sharding(torch):
    """Why parameters cannot be sharded with this PyTorch."""
    if not torch.distributed.is_available():
        return "this PyTorch has no torch.distributed"
    import torch.distributed.device_mesh
    import torch.distributed.fsdp
    import torch.distributed.tensor

    if not hasattr(torch.distributed.fsdp, "fully_shard"):
        return "this release of PyTorch has no fully_shard, which came with 2.6"
    if torch.distributed.is_initialized():
        return "the script makes a process group itself"
    return ""
