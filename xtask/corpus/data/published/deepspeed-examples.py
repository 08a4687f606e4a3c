"""Runs DeepSpeed's example of master weights in 16 bits, and writes down the memory that it prints at its end, in GiB.

    python deepspeed-examples.py CHECKOUT GROUP RESULTS.json

GROUP is a configuration of it. Texts are random tokens of the vocabulary of GPT-2, and there are 6 steps.
"""

import os
import sys

import listening

checkout, group, results = sys.argv[1:4]
folder = os.path.join(checkout, "training", "bf16_master_weight")
arguments = f"""
    --deepspeed_config {folder}/configs/{group}.json --num_layers 32 --hidden_dim 4096 --num_heads 32 --batch_size 1
    --vocab_size 50257 --num_steps 6 --activation_checkpointing --seed 42
"""
listening.run(
    os.path.join(folder, "train.py"),
    arguments.split(),
    results,
    {"peak": r"  Peak memory: ([\d.]+) GB", "allocated": r"  Final allocated memory: ([\d.]+) GB"},
)
