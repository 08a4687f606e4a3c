"""A model of the hub is loaded without a network: the error says what is needed of it."""
# /// xmem
# exit = 3
# trace = "none"
# stderr = ["…help: someone/model is not on this machine, and could not be downloaded: its…", "…--without-weights"]
# environment = { TRANSFORMERS_VERBOSITY = "error", HF_HUB_OFFLINE = "1" }
# ///
from transformers import AutoModelForCausalLM

AutoModelForCausalLM.from_pretrained("someone/model")
