"""A folder with only `config.json` is loaded: the error names the option that helps."""
# /// xmem
# exit = 3
# trace = "none"
# stderr = ["…help: weights of small are not on this machine: --without-weights loads…"]
# environment = { TRANSFORMERS_VERBOSITY = "error", HF_HUB_OFFLINE = "1" }
# ///
from transformers import AutoModelForCausalLM, LlamaConfig

LlamaConfig(vocab_size=2048, hidden_size=64, num_hidden_layers=1, num_attention_heads=2).save_pretrained("small")
AutoModelForCausalLM.from_pretrained("small")
