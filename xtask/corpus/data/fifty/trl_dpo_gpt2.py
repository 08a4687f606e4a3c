# Direct preference optimization with TRL and PEFT on invented pairs
import random
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer

random.seed(3)
words = [f"tok{i}" for i in range(5000)]
vocab = {w: i for i, w in enumerate(["<pad>", "<eos>", "<unk>"] + words)}
tok = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=tok, pad_token="<pad>", eos_token="<eos>", bos_token="<eos>", unk_token="<unk>"
)


def text(n):
    return " ".join(random.choices(words, k=random.randint(n // 2, n)))


def pairs(n):
    return Dataset.from_list(
        [{"prompt": text(48), "chosen": " " + text(80), "rejected": " " + text(80)} for _ in range(n)]
    )


model = GPT2LMHeadModel(
    GPT2Config(vocab_size=len(vocab), n_embd=384, n_layer=6, n_head=6, n_positions=256, bos_token_id=1, eos_token_id=1)
)
peft_config = LoraConfig(
    r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["c_attn", "c_proj"], task_type="CAUSAL_LM"
)
args = DPOConfig(
    output_dir="dpo-out",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    max_steps=6,
    beta=0.1,
    max_length=128,
    learning_rate=5e-5,
    logging_steps=1,
    report_to="none",
    save_strategy="no",
    gradient_checkpointing=True,
    bf16=False,
)
trainer = DPOTrainer(
    model=model, args=args, train_dataset=pairs(64), processing_class=tokenizer, peft_config=peft_config
)
trainer.train()
trainer.save_model("dpo-out/final")
