"""Makes the data of the scripts of `cargo xtask wild`: small, random and always the same.

    python data.py ROOT '[{"make": "mnist", "at": "data", "train": 192, "test": 128}]'

Each piece is written below ROOT, in the layout that a script's own loader reads. Nothing is downloaded. The
functions below are what `make` can name; the other keys are their arguments.
"""

import gzip
import json
import random
import struct
import sys
from pathlib import Path

WORDS = "a the cat dog sees likes big red and but of on under house tree runs sleeps then was is".split()


def mnist(at, train, test):
    """torchvision.datasets.MNIST: images of 28 x 28 and labels, as idx files."""
    import numpy as np

    raw = at / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for part, count in (("train", train), ("t10k", test)):
        images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        # Each digit as often as the others.
        labels = (np.arange(count) % 10).astype(np.uint8)
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        header = struct.pack(">II", 0x801, count)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())


def image(rng, width, height):
    """A picture of random blocks, which compresses well."""
    from PIL import Image

    small = Image.frombytes("RGB", (8, 8), bytes(rng.randrange(256) for _ in range(8 * 8 * 3)))
    return small.resize((width, height))


def pictures(at, count, width, height, end="jpg"):
    """Pictures in one folder."""
    rng = random.Random(0)
    at.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        image(rng, width, height).save(at / f"{number:04}.{end}")


def classes(at, parts, classes, each, width, height):
    """Folders of pictures, one for each class, in each part (train, val); an empty part is the folder itself."""
    for part in parts:
        for number in range(classes):
            pictures(at / part / f"class{number}", each, width, height)


def masks(at, count, width, height):
    """Pictures in `imgs`, and a mask of two classes for each in `masks`."""
    from PIL import Image

    pictures(at / "imgs", count, width, height)
    rng = random.Random(1)
    (at / "masks").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        small = Image.frombytes("L", (8, 8), bytes(rng.randrange(2) for _ in range(64)))
        small.resize((width, height), Image.Resampling.NEAREST).save(at / "masks" / f"{number:04}.png")


def sentence(rng, length):
    return " ".join(rng.choice(WORDS) for _ in range(length))


def text(at, lines, length, words=None):
    """Lines of random words: those above, or so many made-up ones."""
    rng = random.Random(0)
    names = WORDS if words is None else [f"w{number}" for number in range(words)]
    at.parent.mkdir(parents=True, exist_ok=True)
    # Each word at least once, so that the vocabulary has the size that was asked for.
    stream = names + [rng.choice(names) for _ in range(max(0, lines * length - len(names)))]
    rows = (stream[start : start + length] for start in range(0, lines * length, length))
    at.write_text("".join(" ".join(row) + "\n" for row in rows))


def tokens(at, count, vocabulary):
    """Random token ids, 16 bits each."""
    import numpy as np

    at.parent.mkdir(parents=True, exist_ok=True)
    np.random.default_rng(0).integers(0, vocabulary, count, dtype=np.uint16).tofile(at)


def compressed(at, size):
    """So many bytes with value 97, compressed with gzip."""
    at.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(at, "wb", compresslevel=1) as file:
        for _ in range(size // 1_000_000):
            file.write(b"a" * 1_000_000)


def file(at, content, repeat=1):
    """A file with this content: text, so many times, or a value that is written as JSON."""
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text(content * repeat if isinstance(content, str) else json.dumps(content, indent=1))


def folder(at):
    """An empty folder."""
    at.mkdir(parents=True, exist_ok=True)


def conversations(at, rows, length, columns):
    """`train.jsonl` and `test.jsonl`; each column holds random words of up to this length."""
    rng = random.Random(0)
    at.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        lines = []
        for number in range(rows):
            words = length if number == 0 else rng.randint(length // 2, length)
            lines.append(json.dumps({column: sentence(rng, words) for column in columns}))
        (at / f"{part}.jsonl").write_text("\n".join(lines) + "\n")


def paraphrases(at, rows, length):
    """Pairs of sentences with labels, laid out as the MRPC part of the GLUE data set."""
    rng = random.Random(0)
    at.mkdir(parents=True, exist_ok=True)
    files = []
    for part in ("train", "validation", "test"):
        lines = []
        for number in range(rows):
            pair = {f"sentence{k}": sentence(rng, rng.randint(length // 2, length)) for k in (1, 2)}
            lines.append(json.dumps({**pair, "label": number % 2, "idx": number}))
        (at / f"{part}.jsonl").write_text("\n".join(lines) + "\n")
        files.append(f"  - split: {part}\n    path: {part}.jsonl\n")
    card = "---\nconfigs:\n- config_name: mrpc\n  data_files:\n" + "".join(files) + "---\n"
    (at / "README.md").write_text(card)


def tokenizer(at, special, template=None, chat=None):
    """A tokenizer of Transformers that knows the words above; unknown words are one token."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = list(dict.fromkeys(special.values()))
    vocabulary = {word: number for number, word in enumerate(names + WORDS)}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=special["unk_token"]))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    if template:
        pairs = [(name, vocabulary[name]) for name in names]
        inner.post_processor = processors.TemplateProcessing(
            single=template[0], pair=template[1], special_tokens=pairs
        )
    outer = PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=512, **special)
    if chat:
        outer.chat_template = chat
    outer.save_pretrained(at)


def model(at, architecture, config):
    """A model of Transformers with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    kind = getattr(transformers, architecture)
    kind(kind.config_class(**config)).save_pretrained(at)


def weights(at, model):
    """The state of a model of torchvision, all zeros: what it downloads with `pretrained`."""
    import torch
    import torchvision

    with torch.device("meta"):
        state = torchvision.models.get_model(model, weights=None).state_dict()
    at.parent.mkdir(parents=True, exist_ok=True)
    torch.save({name: torch.zeros(value.shape, dtype=value.dtype) for name, value in state.items()}, at)


def main():
    root = Path(sys.argv[1])
    for piece in json.loads(sys.argv[2]):
        make = globals()[piece.pop("make")]
        make(root / piece.pop("at"), **piece)


if __name__ == "__main__":
    main()
