"""Estimates that need no recording, as baselines: the last line is a number of bytes.

- states: parameters and gradients, and the state of the optimizer; no activations. What DeepSpeed's estimators count for
  one GPU ("memory states": https://deepspeed.readthedocs.io/en/latest/memory.html), with the optimizer of the job.
- accelerate: what `accelerate estimate-memory` says of training with Adam: four times the parameters
  (https://huggingface.co/docs/accelerate/usage_guides/model_size_estimator), by its own function for sizes.
- formula: the states, and the activations of each layer of a Transformer by equation 2 of Korthikanti et al. 2022
  (https://arxiv.org/abs/2205.05198), on which EleutherAI's calculator is based
  (https://blog.eleuther.ai/transformer-math/), with values of four bytes and masks of one.
- kitsune: what torch-kitsune predicts for the model and the shape of its input
  (https://pypi.org/project/torch-kitsune/). It knows some optimizers; the others are its "adam" or "sgd", as they keep
  values for each parameter or none.
"""

import argparse

import torch

SEQUENCE = 128
VALUE = 4
MASK = 1
# Values for each parameter that an optimizer keeps between steps, at torch's defaults.
STATES = {"SGD": 0.0, "Adam": 2.0, "AdamW": 2.0, "RMSprop": 1.0, "Adagrad": 1.0, "Adafactor": 0.0}


def model_of(family: str, name: str, device: str) -> torch.nn.Module:
    """The model of a job. A Transformer on the device "meta" has no memory; convolutional networks are small, and RegNet
    computes its sizes with tensors."""
    if family == "cnn":
        import cnn

        build, classes = cnn.MODELS[name]
        return build(classes)
    # What is imported makes tensors of its own: not on that device.
    import transformer
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    auto = AutoModelForSeq2SeqLM if name.lower().startswith("t5") else AutoModelForCausalLM
    configuration = transformer.configuration(name)
    with torch.device(device):
        return auto.from_config(configuration)


def states(model: torch.nn.Module, optimizer: str) -> int:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return round(parameters * VALUE * (2 + STATES[optimizer]))


def accelerate(model: torch.nn.Module) -> int:
    from accelerate.utils import calculate_maximum_sizes

    total, _ = calculate_maximum_sizes(model)
    return int(total) * 4


def formula(model: torch.nn.Module, optimizer: str, batch: int) -> int:
    configuration = model.config
    hidden, heads = configuration.hidden_size, configuration.num_attention_heads
    tokens = batch * SEQUENCE
    layer = tokens * hidden * (16 * VALUE + 2 * MASK) + heads * SEQUENCE * tokens * (2 * VALUE + MASK)
    return states(model, optimizer) + configuration.num_hidden_layers * layer


def kitsune(family: str, model: torch.nn.Module, optimizer: str, batch: int) -> int:
    from kitsune.predict import predict_memory

    shape = (3, 86, 86) if family == "cnn" else (SEQUENCE,)
    name = optimizer.lower() if optimizer in ("SGD", "Adam", "AdamW") else "adam" if STATES[optimizer] else "sgd"
    return int(predict_memory(model, shape, batch_size=batch, optimizer=name).total_bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description="An estimate in bytes, without running the job.")
    parser.add_argument("estimator", choices=("states", "accelerate", "formula", "kitsune"))
    parser.add_argument("--family", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--optimizer", required=True)
    parser.add_argument("--batch", type=int, required=True)
    arguments = parser.parse_args()

    device = "cpu" if arguments.estimator == "kitsune" else "meta"
    model = model_of(arguments.family, arguments.model, device)
    match arguments.estimator:
        case "states":
            print(states(model, arguments.optimizer))
        case "accelerate":
            print(accelerate(model))
        case "kitsune":
            print(kitsune(arguments.family, model, arguments.optimizer, arguments.batch))
        case _:
            print(formula(model, arguments.optimizer, arguments.batch))


if __name__ == "__main__":
    main()
