"""The Transformers of the xMem paper's evaluation, as a training script of our own.

Facts (nothing of it is copied) from Stone-ResearchLife/xMem, file @ commit:

- exp/trainer/train_loop.py @ 5aad72f: order of the calls, names that live on into the next batch, learning rate 0.001,
  StepLR(7, 0.1). The optimizer is built before the model goes to the GPU. The loop ends after the batch with index 3,
  so that four batches are trained on. In this version gradients are set to None after the step ("end" here).
- exp/trainer/train_loop.py @ 0fa57ba: three places for it (0, 1 and 2 there; here "start", "backward" and "end").
- exp/trainer/trainer.py @ 5aad72f, 0715122: the model is built from its configuration, without weights, in training
  mode; WikiText-2 (raw, train) is cut into lines of at most 128 tokens, drawn in random order in the main process and
  padded to the longest line of the batch, by DataCollatorForLanguageModeling(mlm=False): labels are the tokens, with
  -100 for padding. @ da92c55 names float32, and pads all lines of Qwen3, Pythia and DeepSeek to 128 tokens.
- utils/huggingface.py (of the same time): the class of the model follows the task that the hub names: T5 is a
  Seq2SeqLM, the others are CausalLM.
- paper_container/config.py @ 0715122: PyTorch 2.6.0, CUDA 12.4, transformers 4.51.3. That version computes the
  attention of T5 and GPT-Neo in single operations ("eager"), that of the others with scaled_dot_product_attention.

The sizes of the models are those of the configurations that their makers published. Lengths of lines are drawn from a
distribution that is close to WikiText-2's in GPT-2's tokens: 36,718 lines, of which 35 % are empty and 16 % are
headings; paragraphs have about 130 tokens on average. Values of tokens do not matter for memory: all are 1.
"""

import argparse
import random
from collections.abc import Iterable

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    Gemma2Config,
    GPT2Config,
    GPTNeoConfig,
    GPTNeoXConfig,
    LlamaConfig,
    OPTConfig,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
    T5Config,
)

LINES = 36_718
Batch = dict[str, torch.Tensor]


def gpt2(**sizes: object) -> PretrainedConfig:
    return GPT2Config(vocab_size=50257, **sizes)


def opt(**sizes: object) -> PretrainedConfig:
    return OPTConfig(vocab_size=50272, max_position_embeddings=2048, dropout=0.1, attention_dropout=0.0, **sizes)


def t5(**sizes: object) -> PretrainedConfig:
    return T5Config(vocab_size=32128, d_kv=64, pad_token_id=0, decoder_start_token_id=0, **sizes)


def qwen3(**sizes: object) -> PretrainedConfig:
    return Qwen3Config(vocab_size=151936, num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, **sizes)


def configuration(name: str) -> PretrainedConfig:
    """The published configuration of a model; names as in the paper's results, without the makers'."""
    match name:
        case "gpt2":
            return gpt2(n_embd=768, n_layer=12, n_head=12)
        case "distilgpt2":
            return gpt2(n_embd=768, n_layer=6, n_head=12)
        case "Cerebras-GPT-111M":
            drop = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
            return gpt2(n_embd=768, n_layer=10, n_head=12, n_positions=2048, activation_function="gelu", **drop)
        case "gpt-neo-125M":
            kinds = [[["global", "local"], 6]]
            return GPTNeoConfig(vocab_size=50257, hidden_size=768, num_layers=12, num_heads=12, attention_types=kinds)
        case "opt-125m":
            return opt(hidden_size=768, num_hidden_layers=12, ffn_dim=3072, num_attention_heads=12)
        case "opt-350m":
            inner = {"word_embed_proj_dim": 512, "do_layer_norm_before": False}
            return opt(hidden_size=1024, num_hidden_layers=24, ffn_dim=4096, num_attention_heads=16, **inner)
        case "T5-small":
            return t5(d_model=512, d_ff=2048, num_layers=6, num_heads=8)
        case "t5-base":
            return t5(d_model=768, d_ff=3072, num_layers=12, num_heads=12)
        case "pythia-1b":
            return GPTNeoXConfig(
                vocab_size=50304, hidden_size=2048, num_hidden_layers=16, num_attention_heads=8, intermediate_size=8192
            )
        case "Qwen3-0.6B":
            return qwen3(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16)
        case "Qwen3-4B":
            return qwen3(hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32)
        case "DeepSeek-R1-Distill-Qwen-1.5B":
            heads = {"num_attention_heads": 12, "num_key_value_heads": 2}
            return Qwen2Config(
                vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, **heads
            )
        case "Llama-3.2-3B-Instruct":
            heads = {"num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": True}
            return LlamaConfig(
                vocab_size=128256, hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, **heads
            )
        case "gemma-2-2b-it":
            heads = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256}
            return Gemma2Config(
                vocab_size=256000, hidden_size=2304, intermediate_size=9216, num_hidden_layers=26, **heads
            )
    raise SystemExit(f"unknown model {name}")


MODELS = (
    "gpt2 distilgpt2 Cerebras-GPT-111M gpt-neo-125M opt-125m opt-350m T5-small t5-base pythia-1b Qwen3-0.6B Qwen3-4B "
    "DeepSeek-R1-Distill-Qwen-1.5B Llama-3.2-3B-Instruct gemma-2-2b-it"
).split()
EAGER = ("T5-small", "t5-base", "gpt-neo-125M")
ALL_OF_ONE_LENGTH = ("pythia-1b", "Qwen3-0.6B", "Qwen3-4B", "DeepSeek-R1-Distill-Qwen-1.5B")
WITH_END_OR_START = ("T5-small", "t5-base", "opt-125m", "opt-350m", "Llama-3.2-3B-Instruct", "gemma-2-2b-it")


class Lines(Dataset[int]):
    """Lengths of tokenized lines, cut at `longest`."""

    def __init__(self, model: str, longest: int, seed: int) -> None:
        draw = random.Random(seed)
        self.lengths: list[int] = []
        for _ in range(LINES):
            kind = draw.random()
            if kind < 0.353:
                length = 0
            elif kind < 0.513:
                length = draw.randint(4, 14)
            else:
                length = round(draw.lognormvariate(4.645, 0.7))
            length += model in WITH_END_OR_START
            self.lengths.append(longest if model in ALL_OF_ONE_LENGTH else min(length, longest))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> int:
        return self.lengths[index]


def pad(lengths: list[int]) -> Batch:
    longest = max(1, *lengths)
    tokens = torch.ones(len(lengths), longest, dtype=torch.int64)
    real = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)
    return {"input_ids": tokens, "attention_mask": real.long(), "labels": tokens.masked_fill(~real, -100)}


def train(
    model: PreTrainedModel,
    batches: Iterable[Batch],
    optimizer_class: type[torch.optim.Optimizer],
    device: torch.device,
    zero_grad: str,
    last_index: int,
) -> None:
    """One pass in the authors' order. What a name holds stays on the GPU until the name is given another value."""
    optimizer = optimizer_class(model.parameters(), lr=0.001)  # type: ignore[call-arg]
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)
    model.to(device)
    for index, batch in enumerate(batches):
        if zero_grad == "start":
            optimizer.zero_grad()
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        outputs = model(**batch)
        if zero_grad == "backward":
            optimizer.zero_grad()
        loss = outputs.loss
        loss.backward()
        optimizer.step()
        if zero_grad == "end":
            optimizer.zero_grad()
        print(f"batch {index}: {tuple(batch['input_ids'].shape)}", flush=True)
        if index == last_index:
            break
        scheduler.step()


def main() -> None:
    parser = argparse.ArgumentParser(description="A Transformer of the xMem paper's evaluation.")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--optimizer", default="AdamW", help="class of torch.optim (default: AdamW)")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--zero-grad", choices=("start", "backward", "end"), default="end")
    parser.add_argument("--iterations", type=int, default=3, help="index of the last batch: 3 trains on four of them")
    parser.add_argument("--max-length", type=int, default=128, help="tokens at which lines are cut (default: 128)")
    parser.add_argument("--seed", type=int, default=0, help="of the lengths of lines and of their order")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()

    name = arguments.model
    auto = AutoModelForSeq2SeqLM if name in ("T5-small", "t5-base") else AutoModelForCausalLM
    attention = "eager" if name in EAGER else "sdpa"
    model = auto.from_config(configuration(name), attn_implementation=attention)
    model.train()
    lines = Lines(name, arguments.max_length, arguments.seed)
    order = torch.Generator().manual_seed(arguments.seed)
    train(
        model,
        DataLoader(lines, batch_size=arguments.batch, shuffle=True, collate_fn=pad, generator=order),
        getattr(torch.optim, arguments.optimizer),
        torch.device(arguments.device),
        arguments.zero_grad,
        arguments.iterations,
    )


if __name__ == "__main__":
    main()
