"""Models of transformers and torchvision, trained on one GPU or on one of several; `recorded.toml` has the arguments."""

import argparse, torch, torch.nn.functional as F

p = argparse.ArgumentParser()
p.add_argument("--net")
p.add_argument("--mode", default="none")
p.add_argument("--opt", default="adamw")
p.add_argument("--batch", type=int, default=4)
p.add_argument("--mp", action="store_true")
p.add_argument("--bf16", action="store_true")
p.add_argument("--ckpt", action="store_true")
a = p.parse_args()
T = 128
import transformers as tr

dist = a.mode != "none"
if dist:
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(0)
lm = True
if a.net == "gpt2":
    m = tr.GPT2LMHeadModel(tr.GPT2Config(n_layer=6, n_embd=384, n_head=6, vocab_size=16000))
    blocks = m.transformer.h
    V = 16000
elif a.net == "llama":
    m = tr.LlamaForCausalLM(
        tr.LlamaConfig(
            hidden_size=512,
            intermediate_size=1376,
            num_hidden_layers=6,
            num_attention_heads=8,
            num_key_value_heads=4,
            vocab_size=16000,
        )
    )
    blocks = m.model.layers
    V = 16000
elif a.net == "qwen":
    m = tr.Qwen3ForCausalLM(
        tr.Qwen3Config(
            hidden_size=512,
            intermediate_size=1376,
            num_hidden_layers=4,
            num_attention_heads=8,
            num_key_value_heads=2,
            head_dim=64,
            vocab_size=30001,
            tie_word_embeddings=True,
        )
    )
    blocks = m.model.layers
    V = 30001
elif a.net == "bert":
    m = tr.BertForSequenceClassification(
        tr.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, num_labels=5)
    )
    blocks = m.bert.encoder.layer
    lm = False
elif a.net == "t5":
    m = tr.T5ForConditionalGeneration(
        tr.T5Config(
            d_model=384, d_ff=1024, num_layers=4, num_heads=6, d_kv=64, vocab_size=8000, decoder_start_token_id=0
        )
    )
    blocks = [*m.encoder.block, *m.decoder.block]
    V = 8000
elif a.net == "opt":
    m = tr.OPTForCausalLM(
        tr.OPTConfig(
            hidden_size=512,
            num_hidden_layers=5,
            ffn_dim=2048,
            num_attention_heads=8,
            vocab_size=16001,
            word_embed_proj_dim=512,
        )
    )
    blocks = m.model.decoder.layers
    V = 16001
elif a.net in ("vit", "swin", "convnext", "densenet", "mobilenet"):
    import torchvision.models as tv

    lm = None
    if a.net == "vit":
        m = tv.vit_b_32()
        blocks = list(m.encoder.layers)
    if a.net == "swin":
        m = tv.swin_t()
        blocks = (
            [b for s in m.features for b in s if type(b).__name__ == "SwinTransformerBlock"]
            if 0
            else [b for s in m.features if isinstance(s, torch.nn.Sequential) for b in s if "Block" in type(b).__name__]
        )
    if a.net == "convnext":
        m = tv.convnext_tiny()
        blocks = [
            b for s in m.features if isinstance(s, torch.nn.Sequential) for b in s if type(b).__name__ == "CNBlock"
        ]
    if a.net == "densenet":
        m = tv.densenet121()
        blocks = [b for b in m.features if type(b).__name__ == "_DenseBlock"]
    if a.net == "mobilenet":
        m = tv.mobilenet_v2()
        blocks = [b for b in m.features if type(b).__name__ == "InvertedResidual"]
m.train()
if a.ckpt:
    m.gradient_checkpointing_enable({"use_reentrant": False})
m = m.cuda()
if a.bf16:
    m = m.bfloat16()
if a.mode == "ddp":
    m = torch.nn.parallel.DistributedDataParallel(m, device_ids=[0])
if a.mode == "fsdp":
    from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy

    kw = dict(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)) if a.mp else {}
    for b in blocks:
        fully_shard(b, **kw)
    fully_shard(m, **kw)
o = dict(adamw=lambda p: torch.optim.AdamW(p), sgd=lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))[a.opt](
    m.parameters()
)


def main():
    for i in range(4):
        o.zero_grad()
        if lm is None:
            x = torch.randn(a.batch, 3, 224, 224, device="cuda")
            y = torch.randint(0, 1000, (a.batch,), device="cuda")
            loss = F.cross_entropy(m(x), y)
        elif lm:
            x = torch.randint(0, V, (a.batch, T), device="cuda")
            loss = m(input_ids=x, labels=x).loss
        else:
            x = torch.randint(0, 30000, (a.batch, T), device="cuda")
            y = torch.randint(0, 5, (a.batch,), device="cuda")
            loss = m(input_ids=x, labels=y).loss
        loss.backward()
        o.step()


main()
