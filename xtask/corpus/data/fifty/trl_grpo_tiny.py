# GRPO with TRL: reward answers that are short
import random
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

random.seed(5)
words = [f"w{i}" for i in range(2000)]
vocab = {w: i for i, w in enumerate(["<pad>", "<eos>", "<unk>"] + words)}
tok = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=tok, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
)
data = Dataset.from_list([{"prompt": " ".join(random.choices(words, k=random.randint(4, 24)))} for _ in range(48)])


def reward_len(completions, **kwargs):
    return [-abs(16 - len(c.split())) / 16 for c in completions]


model = Qwen2ForCausalLM(
    Qwen2Config(
        vocab_size=len(vocab),
        hidden_size=384,
        intermediate_size=1024,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=1,
    )
)
args = GRPOConfig(
    output_dir="grpo-out",
    per_device_train_batch_size=8,
    num_generations=8,
    max_completion_length=32,
    max_steps=3,
    learning_rate=1e-5,
    logging_steps=1,
    report_to="none",
    save_strategy="no",
    bf16=False,
)
trainer = GRPOTrainer(model=model, reward_funcs=reward_len, args=args, train_dataset=data, processing_class=tokenizer)
trainer.train()
print("done", trainer.state.global_step)
