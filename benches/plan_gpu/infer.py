"""Inference of a network on a GPU: infer.py MODEL BATCH [ITERATIONS]. Prints the peaks that PyTorch counts."""

import json
import sys

import torch


def network(name: str, batch: int) -> tuple[torch.nn.Module, torch.Tensor]:
    if name in ("bert", "gpt2"):
        import transformers

        if name == "bert":
            model = transformers.BertModel(transformers.BertConfig())
        else:
            model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
        return model, torch.ones(batch, 256, dtype=torch.int64)
    import torchvision

    return getattr(torchvision.models, name)(), torch.ones(batch, 3, 224, 224)


def main() -> None:
    name, batch = sys.argv[1], int(sys.argv[2])
    model, inputs = network(name, batch)
    model.cuda().eval()
    with torch.no_grad():
        for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 12):
            result = model(inputs.cuda())
    del result
    memory = torch.cuda.memory
    print(json.dumps({"allocated": memory.max_memory_allocated(), "reserved": memory.max_memory_reserved()}))


if __name__ == "__main__":
    main()
