"""Stand-ins for files of weights that are not on this machine: `xmem profile --without-weights`.

A stand-in is a file of safetensors with a header and a hole in the place of the values, which takes neither disk
nor memory. Its header is that of the file where it is there (a file that was cut off after it); otherwise it lists the
tensors of the model that the configuration describes.

The format: eight bytes with the length of the header, the header in JSON, the values
(huggingface/safetensors, README, "Format").
"""

import copy
import json
import os
import struct

from .. import errors, session

MAX_HEADER = 100 << 20
# Bytes of a file that is made of a model's tensors: Linux refuses to map files that are larger than its memory.
MAX_SHARD = 1 << 30

DTYPES = {
    "bfloat16": "BF16",
    "bool": "BOOL",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "int8": "I8",
    "uint8": "U8",
}

_made = {}


def file(path):
    """The path of a file of safetensors, or of its stand-in if it was cut off after its header."""
    if _state(path) != "header":
        return path
    path = os.path.realpath(path)
    if path not in _made:
        _made[path] = os.path.join(_new_folder(), os.path.basename(path))
        _write(_made[path], _header(path))
        session.note(f"{errors.base_name(path)} contains no tensor data; loading zeros of the same size")
    return _made[path]


def checkpoint(cls, name, kwargs):
    """The checkpoint for `from_pretrained` of a class of transformers: `name`, or a folder with stand-ins if files
    of weights are missing."""
    if name is None or kwargs.get("gguf_file") or kwargs.get("state_dict") is not None:
        return name
    config = _config(cls, name, kwargs)
    folder = _folder(str(name), kwargs)
    if config is None or folder is None:
        return name
    files = _files(folder, kwargs.get("variant"))
    states = {path: _state(path) for path in files or ()}
    if files and all(state == "whole" for state in states.values()):
        return name
    key = (folder, cls)
    if key not in _made:
        _made[key] = _make(cls, config, str(name), folder, files, states)
    # The configuration and the tokenizer are linked; what named a part of the repository is done.
    for option in ("subfolder", "revision", "use_safetensors", "variant"):
        kwargs.pop(option, None)
    return _made[key]


def lacks_weights(name, kwargs):
    """Returns whether the configuration of a checkpoint is on this machine, and some of its weights are not."""
    folder = _folder(name, kwargs)
    if folder is None or not os.path.isfile(os.path.join(folder, "config.json")):
        return False
    files = _files(folder, kwargs.get("variant"))
    return not files or any(_state(path) != "whole" for path in files)


def lacks_configuration(name, kwargs):
    """Returns whether a checkpoint of Hugging Face's hub is not in its cache."""
    return _folder(name, kwargs) is None


def _make(cls, config, name, folder, files, states):
    made = _new_folder()
    index = None
    for entry in os.listdir(folder):
        if entry.endswith(".index.json"):
            index = index or os.path.join(folder, entry)
        elif not entry.endswith((".bin", ".safetensors", ".pt", ".pth", ".h5", ".msgpack", ".gguf")):
            os.symlink(os.path.realpath(os.path.join(folder, entry)), os.path.join(made, entry))
    if files and all(state in ("whole", "header") for state in states.values()):
        for path, state in states.items():
            to = os.path.join(made, os.path.basename(path))
            if state == "whole":
                os.symlink(os.path.realpath(path), to)
            else:
                _write(to, _header(path))
        if index is not None and len(files) > 1:
            os.symlink(os.path.realpath(index), os.path.join(made, "model.safetensors.index.json"))
        source = "the headers of its files"
    else:
        _write_shards(made, _tensors_of_model(cls, config, index))
        source = "its configuration"
    session.note(f"{errors.base_name(name)} contains no weights; loading zeros of the sizes in {source}")
    return made


def _new_folder():
    path = os.path.join(session.folder(), f"weights-{os.getpid()}-{len(_made)}")
    os.mkdir(path, 0o700)
    return path


# ---------------------------------------------------------------------------------------------
# What is there
# ---------------------------------------------------------------------------------------------


def _config(cls, name, kwargs):
    """The configuration, which transformers reads (or downloads); None if it cannot."""
    config = kwargs.get("config")
    if config is not None and not isinstance(config, (str, os.PathLike)):
        return config
    options = ("cache_dir", "revision", "subfolder", "token", "local_files_only", "trust_remote_code")
    given = {option: kwargs[option] for option in options if option in kwargs}
    try:
        return cls.config_class.from_pretrained(config or name, **given)
    except Exception:
        # The script gets the same error.
        return None


def _folder(name, kwargs):
    """The folder of a checkpoint: a local one, or that in the cache of Hugging Face's hub."""
    subfolder = kwargs.get("subfolder") or ""
    if os.path.isdir(name):
        return os.path.join(name, subfolder) if subfolder else name
    try:
        from huggingface_hub import try_to_load_from_cache

        given = {option: kwargs[option] for option in ("cache_dir", "revision") if kwargs.get(option)}
        found = try_to_load_from_cache(name, os.path.join(subfolder, "config.json"), **given)
    except Exception:
        return None
    return os.path.dirname(found) if isinstance(found, str) else None


def _files(folder, variant):
    """The files of weights that transformers would load; None if neither they nor an index are there."""
    for stem, end in (("model", "safetensors"), ("pytorch_model", "bin")):
        stem = f"{stem}.{variant}" if variant else stem
        one = os.path.join(folder, f"{stem}.{end}")
        if os.path.lexists(one):
            return [one]
        index = os.path.join(folder, f"{stem}.{end}.index.json".replace(f".{variant}.{end}", f".{end}"))
        if variant:
            index = index.replace(".index.json", f".index.{variant}.json")
        weights = _read_index(index).get("weight_map")
        if weights:
            return [os.path.join(folder, name) for name in sorted(set(weights.values()))]
    return None


def _read_index(path):
    try:
        with open(path, encoding="utf-8") as opened:
            index = json.load(opened)
    except (OSError, ValueError):
        return {}
    return index if isinstance(index, dict) else {}


def _state(path):
    """The state of a file: "whole", "header" (values are missing), or "absent"."""
    try:
        size = os.path.getsize(path)
        if not str(path).endswith(".safetensors"):
            with open(path, "rb") as opened:
                return "absent" if opened.read(8) == b"version " else "whole"
        header = _header(path)
    except (OSError, ValueError):
        # Also a pointer of Git LFS.
        return "absent"
    return "whole" if size >= len(header) + _size_of_values(header) else "header"


def _header(path):
    """The length and the header of a file."""
    with open(path, "rb") as opened:
        length = opened.read(8)
        size = struct.unpack("<Q", length)[0] if len(length) == 8 else 0
        if not 2 <= size <= MAX_HEADER:
            raise ValueError("no header of safetensors")
        text = opened.read(size)
    if len(text) < size:
        raise ValueError("the header is cut off")
    json.loads(text)
    return length + text


def _size_of_values(header):
    tensors = json.loads(header[8:])
    return max([entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"], default=0)


# ---------------------------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------------------------


def _write(path, header):
    """Writes a file with this header and a hole for the values."""
    with open(path, "xb") as opened:
        opened.write(header)
        opened.truncate(len(header) + _size_of_values(header))


def _tensors_of_model(cls, config, index):
    """The tensors of a model by name, without memory, in the dtype of its checkpoint."""
    import torch

    with torch.device("meta"):
        model = cls(copy.deepcopy(config))
    seen, tensors = set(), []
    for name, tensor in model.state_dict(keep_vars=True).items():
        # Tied tensors are stored once.
        if id(tensor) not in seen:
            seen.add(id(tensor))
            tensors.append((name, tensor.detach()))
    dtype = _dtype(torch, config, tensors, _read_index(index) if index else {})
    return [(name, tensor.to(dtype) if tensor.is_floating_point() else tensor) for name, tensor in tensors]


def _dtype(torch, config, tensors, index):
    """The dtype of a checkpoint: that of the configuration, unless the size in its index tells another."""
    dtype = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None) or torch.float32
    if isinstance(dtype, str):
        dtype = getattr(torch, dtype.replace("torch.", ""), torch.float32)
    total = (index.get("metadata") or {}).get("total_size")
    elements = sum(tensor.numel() for _, tensor in tensors)
    if isinstance(total, int) and total == 4 * elements:
        return torch.float32
    return dtype


def _write_shards(folder, tensors):
    shards, size = [[]], 0
    for name, tensor in tensors:
        if shards[-1] and size + tensor.nbytes > MAX_SHARD:
            shards.append([])
            size = 0
        shards[-1].append((name, tensor))
        size += tensor.nbytes
    names = {}
    for number, shard in enumerate(shards, 1):
        to = f"model-{number:05}-of-{len(shards):05}.safetensors"
        names.update((name, to) for name, _ in shard)
        _write(os.path.join(folder, to), _header_of(shard))
    index = {"metadata": {"total_size": sum(tensor.nbytes for _, tensor in tensors)}, "weight_map": names}
    with open(os.path.join(folder, "model.safetensors.index.json"), "x", encoding="utf-8") as opened:
        json.dump(index, opened)


def _header_of(tensors):
    entries, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors:
        dtype = DTYPES[str(tensor.dtype).replace("torch.", "")]
        entries[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text
