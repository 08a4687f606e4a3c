# Supervised fine-tuning with TRL on made-up instructions; the model is a small LLaMA from its configuration
import random
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

random.seed(0)
words = [f"word{i}" for i in range(4000)]
vocab = {w: i for i, w in enumerate(["<pad>", "<s>", "</s>", "<unk>"] + words)}
tok = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=tok, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
)


def sentence(lo, hi):
    return " ".join(random.choices(words, k=random.randint(lo, hi)))


train = Dataset.from_list([{"prompt": sentence(5, 40), "completion": " " + sentence(20, 120)} for _ in range(64)])
test = Dataset.from_list([{"prompt": sentence(5, 40), "completion": " " + sentence(20, 120)} for _ in range(16)])
config = LlamaConfig(
    vocab_size=len(vocab),
    hidden_size=512,
    intermediate_size=1376,
    num_hidden_layers=6,
    num_attention_heads=8,
    num_key_value_heads=4,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
model = LlamaForCausalLM(config)
args = SFTConfig(
    output_dir="sft-out",
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    num_train_epochs=1,
    max_length=128,
    learning_rate=2e-4,
    logging_steps=2,
    eval_strategy="epoch",
    save_strategy="epoch",
    report_to="none",
    gradient_checkpointing=False,
    bf16=True,
)
trainer = SFTTrainer(model=model, args=args, train_dataset=train, eval_dataset=test, processing_class=tokenizer)
trainer.train()
print(trainer.evaluate())
