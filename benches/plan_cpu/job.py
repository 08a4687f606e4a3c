"""A job whose iterations are run on demand: for each line on standard input one iteration, whose figures are printed as JSON.

The iterations before the first line are a warm-up: a plan that is made while the job runs is followed behind them.
"""

import argparse
import json
import resource
import sys
import time

import torch

MODELS = ("resnet18", "resnet50", "bert", "gpt2")
TOKENS = 64
# Iterations of the warm-up, before and behind the time that a planner has.
WARM_UP = (5, 3)
PLANNING_SECONDS = 3


def build(name: str, batch: int) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The model with random weights, and its arguments."""
    if name.startswith("resnet"):
        import torchvision

        return torchvision.models.get_model(name, weights=None), {"x": torch.randn(batch, 3, 224, 224)}
    from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

    model = BertModel(BertConfig()) if name == "bert" else GPT2LMHeadModel(GPT2Config(use_cache=False))
    return model, {"input_ids": torch.randint(0, 30000, (batch, TOKENS))}


def first(result: object) -> torch.Tensor:
    """The first tensor of what a model returns."""
    return result if isinstance(result, torch.Tensor) else result[0]


def memory(key: str) -> int:
    """Kibibytes of this process, by a key of /proc/self/status."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))


def page_faults() -> int:
    """The page faults of this process that needed no disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def forget_peak() -> None:
    """Has the peak of the resident memory begin anew."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def main() -> None:
    parser = argparse.ArgumentParser(description="A job whose iterations are run on demand.")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--train", action="store_true", help="forward, backward and a step of SGD")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    model, arguments = build(options.model, options.batch)
    model.train(options.train)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def iteration() -> float:
        if not options.train:
            with torch.inference_mode():
                return first(model(**arguments)).double().sum().item()
        optimizer.zero_grad()
        loss = first(model(**arguments)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    before = memory("VmRSS")
    for number, count in enumerate(WARM_UP):
        for _ in range(count):
            value = iteration()
        if number == 0:
            time.sleep(PLANNING_SECONDS)
    forget_peak()
    print(json.dumps({"before": before}), flush=True)
    for _ in sys.stdin:
        faults, used, start = page_faults(), time.process_time(), time.perf_counter()
        value = iteration()
        figures = {
            "seconds": time.perf_counter() - start,
            "processor": time.process_time() - used,
            "faults": page_faults() - faults,
            "peak": memory("VmHWM"),
            "value": value.hex(),
        }
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
