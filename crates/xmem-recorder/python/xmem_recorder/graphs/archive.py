"""The archive of an exported program, in the layout of torch.export.save (torch/export/pt2_archive/constants.py), without
weights, and without what tells about the machine.

Each dtype of weights has one empty file, of which torch.export.load makes zeros that all weights share.
"""

import json
import sys
import zipfile

ARCHIVE_VERSION = "0"
# Metadata of nodes that is kept; others hold paths of files.
KEPT_METADATA = ("nn_module_stack",)


def write(path, name, written, job):
    """Writes the archive of a program, as `serialize` returns it, and the description of its job."""
    program, weights, constants = written
    files = {
        "archive_format": "pt2",
        "archive_version": ARCHIVE_VERSION,
        "byteorder": sys.byteorder,
        "models/model.json": _text(program),
        "data/weights/model_weights_config.json": _text(weights),
        "data/constants/model_constants_config.json": _text(constants),
        "data/sample_inputs/model.pt": "",
        "extra/xmem.job.json": json.dumps(job, indent=1),
        ".data/version": "3\n",
        ".data/serialization_id": "0" * 40,
    }
    for number in range(len({entry["tensor_meta"]["dtype"] for entry in weights["config"].values()})):
        files[f"data/weights/weight_{number}"] = ""
    for number in range(len(constants["config"])):
        files[f"data/constants/tensor_{number}"] = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file, content in files.items():
            info = zipfile.ZipInfo(f"{name}/{file}", (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED if content else zipfile.ZIP_STORED
            archive.writestr(info, content)


def _text(value):
    return json.dumps(value, separators=(",", ":"))


def serialize(torch, exported):
    """The program, its weights and constants as torch writes them in JSON; raises what torch raises about nodes that it cannot
    write."""
    from torch._export.serde import serialize

    for module in exported.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                for key in ("stack_trace", "source_fn_stack", "from_node", "torch_fn"):
                    node.meta.pop(key, None)
    kept = exported._state_dict, exported._constants
    exported._state_dict = {key: _meta(torch, value) for key, value in exported.state_dict.items()}
    exported._constants = {key: _meta(torch, value) for key, value in exported.constants.items()}
    exported._example_inputs = None
    try:
        written = serialize.ExportedProgramSerializer().serialize(exported)
    finally:
        exported._state_dict, exported._constants = kept
    text = json.dumps(
        serialize._dataclass_to_dict(written.exported_program),
        cls=serialize.EnumEncoder,
    )
    program = json.loads(text)
    graph = program["graph_module"]
    graph["module_call_graph"] = [call for call in graph["module_call_graph"] if not call["fqn"]]
    weights = _payload(torch, serialize, exported.state_dict, "weight_")
    constants = _payload(torch, serialize, exported.constants, "tensor_", each=True)
    return program, weights, constants


def _meta(torch, value):
    if not isinstance(value, torch.Tensor):
        return value
    empty = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(empty, requires_grad=value.requires_grad)
    return empty


def _payload(torch, serialize, tensors, prefix, each=False):
    """The table of tensors. Those of one dtype share a file, whose size is that of the first: the largest comes first."""
    found = {name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)}
    order = sorted(found, key=lambda name: -found[name].numel())
    files, config = {}, {}
    for index, name in enumerate(order):
        value = found[name]
        file = index if each else files.setdefault(value.dtype, len(files))
        meta = serialize.serialize_tensor_meta(_meta(torch, value))
        meta = json.loads(json.dumps(serialize._dataclass_to_dict(meta), cls=serialize.EnumEncoder))
        meta["device"] = {"type": "cpu", "index": None}
        config[name] = {
            "path_name": f"{prefix}{file}",
            "is_param": isinstance(value, torch.nn.Parameter),
            "use_pickle": False,
            "tensor_meta": meta,
        }
    return {"config": config}
