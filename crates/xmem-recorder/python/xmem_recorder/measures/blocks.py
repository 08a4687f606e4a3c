"""The blocks of a model, which several measures share: the modules of the classes that repeat."""


def classes_of_blocks(torch, roots):
    """The blocks below some modules, as lists of the instances of one class each.

    They are those of the class that repeats and has the most parameters, and of other classes with at least a quarter
    as many: those of a decoder and an encoder. Of blocks inside blocks these are the outer ones, unless those are a few
    stages that consist of many smaller blocks.
    """
    classes = _repeated_blocks(torch, roots)
    # Parents come before their children, and the order of equal ones is kept.
    classes.sort(key=lambda blocks: -_size_of_blocks(torch, blocks))
    chosen = []
    for blocks in classes:
        is_large = _size_of_blocks(torch, blocks) >= 0.25 * _size_of_blocks(torch, classes[0])
        if is_large and _are_separate(blocks, sum(chosen, [])):
            chosen.append(blocks)
    return [blocks for stages in chosen for blocks in _classes_of_stages(torch, stages) or [stages]]


def _repeated_blocks(torch, roots):
    """The outermost instances of each class of blocks that repeats, in lists and numbered attributes (`layer1`)."""
    found = {}
    for root in roots:
        for path, parent in root.named_modules():
            # A token passes only some of the experts, and they are not what is computed one after the other.
            if "expert" in path.rpartition(".")[2]:
                continue
            for name, child in parent.named_children():
                child = getattr(child, "_fsdp_wrapped_module", child)
                if _is_block(torch, parent, name, child):
                    found.setdefault(type(child), {})[id(child)] = child
    classes = [_outermost_blocks(list(blocks.values())) for blocks in found.values()]
    classes = [blocks for blocks in classes if len(blocks) > 1]
    # Plain Sequential modules only where nothing else repeats.
    return [blocks for blocks in classes if type(blocks[0]) is not torch.nn.Sequential] or classes


def _is_block(torch, parent, name, child):
    nn = torch.nn
    lists = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
    if not isinstance(parent, lists) and not name[-1:].isdigit():
        return False
    if type(child) in (nn.ModuleList, nn.ModuleDict):
        return False
    if type(child) is nn.Sequential and not isinstance(parent, lists):
        return False
    return next(child.children(), None) is not None and next(child.parameters(), None) is not None


def _outermost_blocks(blocks):
    """The blocks that are not inside others of them."""
    inner = {id(module) for block in blocks for module in block.modules() if module is not block}
    return [block for block in blocks if id(block) not in inner]


def _are_separate(blocks, others):
    """Returns whether no block is inside another one or contains it."""
    inside = {id(module) for block in blocks for module in block.modules()}
    inside_others = {id(module) for block in others for module in block.modules()}
    return not any(id(block) in inside_others for block in blocks) and not any(id(other) in inside for other in others)


def _size_of_blocks(torch, blocks):
    """The number of elements of the parameters of some blocks."""
    is_lazy = torch.nn.parameter.is_lazy
    return sum(p.numel() for block in blocks for p in block.parameters() if not is_lazy(p))


def _classes_of_stages(torch, stages):
    """The smaller blocks, if blocks are stages like those of Swin: few, and made of many others almost entirely."""
    if len(stages) > 5:
        return []
    classes = classes_of_blocks(torch, stages)
    blocks = sum(classes, [])
    is_most = _size_of_blocks(torch, blocks) >= 0.8 * _size_of_blocks(torch, stages)
    return classes if is_most and len(blocks) >= 2 * len(stages) else []
