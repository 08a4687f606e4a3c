"""Four steps of one of 30 public models, chosen before anything was known of them: unseen.py MODEL OPTIMIZER BATCH

MODELS lists the models, as tv/NAME, timm/NAME and hf/NAME; OPTIMIZER is adamw or sgd.
"""

import sys

MODELS = """tv/googlenet tv/resnext50_32x4d tv/wide_resnet50_2 tv/densenet169 tv/efficientnet_v2_s tv/convnext_small
tv/mobilenet_v2 tv/shufflenet_v2_x2_0 tv/vgg16_bn tv/maxvit_t timm/deit_small_patch16_224 timm/mixer_s32_224
timm/beit_base_patch16_224 timm/poolformer_s12 timm/xcit_nano_12_p16_224 timm/levit_128s timm/repvgg_a0 timm/edgenext_small
timm/resnest26d timm/coat_lite_mini hf/roberta hf/electra hf/albert hf/mpnet hf/mistral hf/phi hf/gemma hf/bloom hf/gpt_neox
hf/bart""".split()


def main(model, opt, batch):
    import torch

    kind, name = model.split("/", 1)
    from torch import nn

    LEN = 128

    def lm(cls, cfg):
        import transformers

        config = getattr(transformers, cfg[0])(**cfg[1])
        return getattr(transformers, cls)(config)

    S = dict(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=30522)
    KV = dict(S, num_key_value_heads=4, vocab_size=32000)
    T = {
        "roberta": ("RobertaForMaskedLM", ("RobertaConfig", S)),
        "electra": ("ElectraForMaskedLM", ("ElectraConfig", dict(S, embedding_size=128))),
        "albert": ("AlbertForMaskedLM", ("AlbertConfig", dict(S, embedding_size=128))),
        "mpnet": ("MPNetForMaskedLM", ("MPNetConfig", S)),
        "mistral": ("MistralForCausalLM", ("MistralConfig", KV)),
        "phi": ("PhiForCausalLM", ("PhiConfig", dict(S, vocab_size=32000))),
        "gemma": ("GemmaForCausalLM", ("GemmaConfig", dict(KV, head_dim=64))),
        "bloom": ("BloomForCausalLM", ("BloomConfig", dict(hidden_size=512, n_layer=6, n_head=8, vocab_size=50000))),
        "gpt_neox": ("GPTNeoXForCausalLM", ("GPTNeoXConfig", S)),
        "bart": (
            "BartForConditionalGeneration",
            (
                "BartConfig",
                dict(
                    d_model=512,
                    encoder_layers=4,
                    decoder_layers=4,
                    encoder_attention_heads=8,
                    decoder_attention_heads=8,
                    encoder_ffn_dim=2048,
                    decoder_ffn_dim=2048,
                    vocab_size=30522,
                ),
            ),
        ),
    }
    if kind == "tv":
        import torchvision

        kw = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
        model = getattr(torchvision.models, name)(**kw)
    elif kind == "timm":
        import timm

        model = timm.create_model(name)
    else:
        model = lm(*T[name])
    model.cuda().train()
    make = {"adamw": torch.optim.AdamW, "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9)}[opt]
    optimizer = make(model.parameters())
    for step in range(4):
        optimizer.zero_grad()
        if kind == "hf":
            x = torch.randint(0, 1000, (batch, LEN)).cuda()
            loss = model(input_ids=x, labels=x).loss
        else:
            x = torch.randn(batch, 3, 224, 224).cuda()
            y = torch.randint(0, 1000, (batch,)).cuda()
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
