# Seq2SeqTrainer with predict_with_generate and metrics on decoded ids
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration


class Pairs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randint(3, 6000, (n, 96), generator=g)
        self.y = torch.randint(3, 6000, (n, 24), generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "attention_mask": torch.ones(96, dtype=torch.long), "labels": self.y[i]}


def metrics(p):
    pred = p.predictions[0] if isinstance(p.predictions, tuple) else p.predictions
    return {"gen_len": float(np.mean([np.count_nonzero(r > 1) for r in pred]))}


model = T5ForConditionalGeneration(
    T5Config(vocab_size=6000, d_model=384, d_kv=64, d_ff=1024, num_layers=4, num_heads=6, decoder_start_token_id=0)
)
args = Seq2SeqTrainingArguments(
    "t5-out",
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    num_train_epochs=1,
    learning_rate=3e-4,
    lr_scheduler_type="linear",
    eval_strategy="epoch",
    save_strategy="epoch",
    logging_steps=2,
    predict_with_generate=True,
    generation_max_length=20,
    generation_num_beams=2,
    report_to="none",
    load_best_model_at_end=True,
    metric_for_best_model="loss",
)
trainer = Seq2SeqTrainer(
    model=model, args=args, train_dataset=Pairs(48, 0), eval_dataset=Pairs(16, 1), compute_metrics=metrics
)
trainer.train()
print(trainer.evaluate())
