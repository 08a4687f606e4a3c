"""Stores of a process that runs without the others of its job: what they would say is taken for granted.

PyTorch's stores wait for a server, for other processes, and for keys that these set (torch/csrc/distributed/c10d/
TCPStore.cpp, FileStore.cpp, HashStore.cpp). These wait for nothing.
"""

import itertools

from .. import session
from ..patching import calling_module, replace_in_torch

# Bytes of a key that no one has set, in place of what another rank would say: those of NCCL's `ncclUniqueId`.
UNSET = b"\1" * 128
# Keys under which ranks exchange their parts of symmetric memory (torch/csrc/distributed/c10d/symm_mem/
# CUDASymmetricMemoryUtils.hpp, `StoreExchange`).
SYMMETRIC = "CUDASymmetricMemory/"
# The first port of stores that choose one themselves.
FIRST_PORT = 29400

# What stores with the same place have in common, by that place.
_contents = {}
_ports = itertools.count(FIRST_PORT)
# C++ does not keep the Python part of a store.
_kept = []


def install(torch, world_size):
    """Replaces the stores of `torch.distributed`."""
    distributed = torch.distributed
    for name, kind in _kinds(distributed, world_size).items():
        original = getattr(distributed, name, None)
        if original is None:
            continue
        kind.__name__ = kind.__qualname__ = name
        kind.__doc__ = original.__doc__
        replace_in_torch(name, original, kind)


def _kinds(distributed, world_size):
    base = _make(distributed, world_size)

    class Tcp(base):
        def __init__(self, host_name, port=0, world_size=None, is_master=False, timeout=None, *args, **kwargs):
            self.host = host_name
            self.port = port or next(_ports)
            super().__init__(("tcp", self.host, self.port))

    class File(base):
        def __init__(self, path, num_workers=-1, **kwargs):
            self.path = path
            super().__init__(("file", path))

    class Hash(base):
        def __init__(self):
            super().__init__(("hash", id(self)))

    return {"TCPStore": Tcp, "FileStore": File, "HashStore": Hash}


def _make(distributed, world_size):
    class Store(distributed.Store):
        """A dictionary, in which others are taken to have set what is missing."""

        def __init__(self, place):
            super().__init__()
            self._content = _contents.setdefault(place, {})
            _kept.append(self)

        def set(self, key, value):
            self._content[key] = _bytes(value)

        def get(self, key):
            value = self._content.get(key)
            if value is None and SYMMETRIC in key:
                value = self._own(key)
            if value is None:
                # A group of NCCL asks for the identifier of its communicator.
                if not calling_module().startswith("torch") and "//cuda//" not in key:
                    session.note(f"the script reads the key '{key}' of a store, which another rank would set")
                return UNSET
            return value

        def _own(self, key):
            """What this rank has said where others say it under a key that ends with their rank."""
            place = key.rpartition("/")[0] + "/"
            return next((self._content[known] for known in self._content if known.startswith(place)), None)

        def add(self, key, amount):
            value = int(self._content.get(key, b"0")) + amount
            if amount == 1:
                # It counts the ranks that have come.
                value = max(value, world_size)
            self._content[key] = str(value).encode()
            return value

        def append(self, key, value):
            self._content[key] = self._content.get(key, b"") + _bytes(value)

        def compare_set(self, key, expected, desired):
            expected, desired = _bytes(expected), _bytes(desired)
            current = self._content.get(key)
            if current == expected or current is None and not expected:
                self._content[key] = desired
                return desired
            return expected if current is None else current

        def check(self, keys):
            return all(key in self._content for key in keys)

        def wait(self, keys, timeout=None):
            pass

        def delete_key(self, key):
            return self._content.pop(key, None) is not None

        def num_keys(self):
            return len(self._content)

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def has_extended_api(self):
            return True

        def list_keys(self):
            return list(self._content)

        def clone(self):
            return self

    return Store


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)
