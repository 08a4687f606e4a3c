"""Hugging Face Trainer on a small GPT-2, in bfloat16 and with gradient accumulation."""
# /// xmem
# iterations = 3
# stdout = ["device cuda:0"]
# stdout-without = ["done"]
# environment = { TRANSFORMERS_VERBOSITY = "error" }
# [inspect]
# "/job/optimizers" = ["AdamW"]
# [export]
# "/inputs" = { contains = { name = "input_ids", role = "batch" } }
# "/losses" = { length = 1 }
# ///
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(Dataset):
    def __len__(self):
        return 1024

    def __getitem__(self, index):
        ids = torch.arange(index, index + 32) % 500
        return {"input_ids": ids, "labels": ids}


config = GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=512, n_positions=64)
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    max_steps=50,
    bf16=True,
    logging_steps=1,
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
)
print("device", arguments.device)
trainer = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=Tokens())
trainer.train()
print("done")
