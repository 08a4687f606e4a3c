"""Runs a script of a chapter on training speed for one epoch, and writes down the memory that it prints after it.

    python llms-from-scratch.py CHECKOUT GROUP RESULTS.json

The book that it downloads is a text of the same length. The tokenizer, which it downloads as well, makes a token of four characters.
"""

import os
import re
import sys
import tempfile
import types

import listening

checkout, group, results = sys.argv[1:4]
# Of https://www.gutenberg.org/cache/epub/145/pg145.txt.
CHARACTERS = 1_790_000
CLASSES = 50257


class Encoding:
    def encode(self, text, **_):
        return [at * 7919 % CLASSES for at in range(len(text) // 4)]

    def decode(self, tokens):
        return " ".join(map(str, tokens))


tokenizer = types.ModuleType("tiktoken")
tokenizer.get_encoding = lambda name: Encoding()
# Losses are not plotted.
plots = types.ModuleType("matplotlib.pyplot")
plots.subplots = None
package = types.ModuleType("matplotlib")
package.pyplot = plots
sys.modules |= {"tiktoken": tokenizer, "matplotlib": package, "matplotlib.pyplot": plots}

os.chdir(tempfile.mkdtemp())
with open("middlemarch.txt", "w") as file:
    file.write("word " * (CHARACTERS // 5))
with open(os.path.join(checkout, "ch05", "10_llm-training-speed", f"{group}.py")) as file:
    text = file.read()
script = os.path.abspath(f"{group}.py")
with open(script, "w") as file:
    file.write(re.sub(r'"num_epochs": \d+', '"num_epochs": 1', text))
listening.run(
    script,
    [],
    results,
    {"allocated": r"\s*Allocated memory: ([\d.]+) GB", "reserved": r"\s*Reserved memory: ([\d.]+) GB"},
)
