"""A training job of a public model with random weights and data: models.py NAME.

NAMES lists them. Precision, optimizer, memory format and gradient clipping follow from the position in the list.
"""

import os, sys, warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
TV = "alexnet googlenet inception_v3 resnext50_32x4d wide_resnet50_2 efficientnet_v2_s maxvit_t swin_s convnext_small mnasnet1_0 mobilenet_v2 densenet169 regnet_x_1_6gf vgg16_bn fcn_resnet50 lraspp_mobilenet_v3_large r3d_18 mvit_v1_b s3d raft_small".split()
DET = "fasterrcnn_resnet50_fpn maskrcnn_resnet50_fpn retinanet_resnet50_fpn ssdlite320_mobilenet_v3_large fcos_resnet50_fpn keypointrcnn_resnet50_fpn".split()
TIMM = "convnextv2_nano efficientnet_b0 coatnet_0_rw_224 mobilevit_s mobileone_s1 nfnet_f0 beit_base_patch16_224 eva02_tiny_patch14_224 xcit_tiny_12_p16_224 poolformer_s12 hrnet_w18 resnest26d ghostnet_100 repvgg_a2 pvt_v2_b0 crossvit_tiny_240 mixer_s32_224 volo_d1_224 twins_svt_small edgenext_small fastvit_t8 hiera_tiny_224 focalnet_tiny_srf levit_128 mobilenetv4_conv_small cait_xxs24_224 tf_efficientnetv2_b0 rexnet_100 dla34 swinv2_tiny_window8_256".split()
HF = "bert roberta distilbert albert electra deberta-v2 gpt2 gpt_neo gptj opt bloom llama mistral mixtral qwen2 qwen3 qwen3_moe gemma gemma2 gemma3_text phi phi3 falcon mamba mamba2 t5 bart pegasus whisper wav2vec2 clip vit segformer swin convnext dinov2 olmo2 stablelm cohere deepseek_v3 granite gpt_oss modernbert glm4 smollm3 nemotron xlnet funnel longformer big_bird".split()
OWN = "lstm_lm bilstm_tagger gru_forecaster ctc_speech unet3d gcn vq_vae transformer_compile resnet_compile ddpm_lr wgan_gp a2c sparse_embedding muon_like cholesky_gp fft_mixer".split()
NAMES = (
    [("tv", n) for n in TV]
    + [("det", n) for n in DET]
    + [("timm", n) for n in TIMM]
    + [("hf", n) for n in HF]
    + [("own", n) for n in OWN]
)


def main(name):
    import torch
    import torch.nn.functional as F

    index = [n for _, n in NAMES].index(name)
    kind = NAMES[index][0]
    precision = ["fp32", "amp-bf16", "fp32", "amp-fp16"][index % 4]
    optim = ["adamw", "sgdm", "adam-fused", "adamw", "rmsprop"][index % 5]
    channels_last = kind in ("tv", "timm") and index % 3 == 0
    torch.manual_seed(0)
    dev = "cuda"
    own = None
    if kind == "tv":
        import torchvision

        m = (
            torchvision.models.get_model(
                name, weights=None, **(dict(weights_backbone=None) if "fcn" in name or "lraspp" in name else {})
            )
            if name != "raft_small"
            else torchvision.models.optical_flow.raft_small()
        )
        video = name in ("r3d_18", "mvit_v1_b", "s3d")
        side = 299 if name == "inception_v3" else 224
        x = (
            torch.randn(2, 3, 16, side, side)
            if video
            else torch.randn(2, 3, 128, 128)
            if name == "raft_small"
            else torch.randn(8, 3, side, side)
        )

        def loss():
            if name == "raft_small":
                return sum(f.abs().mean() for f in m(x, x.flip(0), num_flow_updates=4))
            y = m(x)
            if isinstance(y, dict):
                y = y["out"]
            if isinstance(y, tuple):
                y = y[0] + (0 * y[1].sum() if y[1] is not None else 0)
            return F.cross_entropy(y.float(), torch.zeros(y.shape[:1] + y.shape[2:], dtype=torch.long, device=dev))
    elif kind == "det":
        import torchvision

        m = torchvision.models.get_model(name, weights=None, weights_backbone=None)
        ims = [torch.rand(3, 320, 400), torch.rand(3, 400, 320)]
        tg = [
            dict(
                boxes=torch.tensor([[10.0, 10.0, 100.0, 120.0], [50.0, 60.0, 200.0, 220.0]]),
                labels=torch.tensor([1, 1]),
                masks=torch.ones(2, *i.shape[1:], dtype=torch.uint8),
                keypoints=torch.rand(2, 17, 3) * 100 + 20,
            )
            for i in ims
        ]
        ims = [i.to(dev) for i in ims]
        tg = [{k: v.to(dev) for k, v in t.items()} for t in tg]
        x = None

        def loss():
            return sum(m(ims, tg).values())
    elif kind == "timm":
        import timm

        m = timm.create_model(name, pretrained=False)
        s = m.default_cfg["input_size"][1:] if hasattr(m, "default_cfg") else (224, 224)
        x = torch.randn(16, 3, *s)

        def loss():
            y = m(x)
            y = y[0] if isinstance(y, (tuple, list)) else y
            return F.cross_entropy(y.float(), torch.arange(16, device=dev))
    elif kind == "hf":
        import transformers as T

        over = dict(
            vocab_size=2000,
            hidden_size=256,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=512,
            max_position_embeddings=512,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
        layers = dict(
            d_model=256,
            encoder_layers=3,
            decoder_layers=3,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=512,
            decoder_ffn_dim=512,
        )
        more = dict(
            gpt2=dict(n_embd=256, n_layer=3, n_head=4, n_positions=512),
            gptj=dict(n_embd=256, n_layer=3, n_head=4, rotary_dim=32, n_positions=512),
            gpt_neo=dict(num_layers=3, attention_types=[[["global", "local", "global"], 1]], num_heads=4),
            bloom=dict(n_layer=3, n_head=4),
            opt=dict(ffn_dim=512, word_embed_proj_dim=256),
            t5=dict(d_model=256, d_kv=64, d_ff=512, num_layers=3, num_heads=4, decoder_start_token_id=0),
            bart=layers,
            whisper=dict(
                **layers,
                max_target_positions=128,
                max_source_positions=300,
                decoder_start_token_id=1,
            ),
            distilbert=dict(dim=256, n_layers=3, n_heads=4, hidden_dim=512),
            mixtral=dict(num_key_value_heads=2, num_local_experts=4),
            qwen3_moe=dict(
                num_key_value_heads=2, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256, head_dim=64
            ),
            deepseek_v3=dict(
                n_routed_experts=8,
                n_group=2,
                topk_group=1,
                num_experts_per_tok=2,
                moe_intermediate_size=128,
                q_lora_rank=64,
                kv_lora_rank=32,
                qk_rope_head_dim=16,
                qk_nope_head_dim=32,
                v_head_dim=32,
                first_k_dense_replace=1,
                num_key_value_heads=4,
            ),
            gpt_oss=dict(num_local_experts=4, num_experts_per_tok=2, head_dim=64, num_key_value_heads=2),
            gemma=dict(num_key_value_heads=2, head_dim=64),
            gemma2=dict(num_key_value_heads=2, head_dim=64),
            gemma3_text=dict(num_key_value_heads=2, head_dim=64),
            mamba=dict(state_size=16, num_hidden_layers=2),
            mamba2=dict(num_heads=8, head_dim=64, state_size=32, n_groups=1, num_hidden_layers=2, chunk_size=64),
            xlnet=dict(d_model=256, n_layer=3, n_head=4, d_inner=512),
            funnel=dict(d_model=256, n_head=4, d_head=64, d_inner=512, block_sizes=[1, 1]),
            longformer=dict(attention_window=64, max_position_embeddings=520),
            big_bird=dict(block_size=16, num_random_blocks=2),
            modernbert=dict(num_hidden_layers=3),
            albert=dict(embedding_size=128),
            nemotron=dict(num_key_value_heads=2),
            glm4=dict(num_key_value_heads=2, head_dim=64),
            mistral=dict(num_key_value_heads=2),
            llama=dict(num_key_value_heads=2),
            qwen2=dict(num_key_value_heads=2),
            qwen3=dict(num_key_value_heads=2, head_dim=64),
            smollm3=dict(num_key_value_heads=2),
            granite=dict(num_key_value_heads=2),
            olmo2=dict(num_key_value_heads=2),
            stablelm=dict(num_key_value_heads=2),
            cohere=dict(num_key_value_heads=2),
            phi3=dict(num_key_value_heads=2),
            falcon=dict(num_kv_heads=4),
        )
        if name in ("clip", "vit", "segformer", "swin", "convnext", "dinov2", "wav2vec2"):
            if name == "clip":
                c = T.CLIPConfig(
                    text_config=dict(
                        hidden_size=256,
                        num_hidden_layers=3,
                        num_attention_heads=4,
                        intermediate_size=512,
                        vocab_size=2000,
                        bos_token_id=1,
                        eos_token_id=2,
                    ),
                    vision_config=dict(
                        hidden_size=256, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512
                    ),
                )
                m = T.CLIPModel(c)
                x = torch.randn(8, 3, 224, 224)
                ids = torch.randint(3, 2000, (8, 32))
                ids[:, -1] = 2
                ids = ids.to(dev)

                def loss():
                    return m(input_ids=ids, pixel_values=x, return_loss=True).loss
            elif name == "wav2vec2":
                c = T.Wav2Vec2Config(
                    hidden_size=256,
                    num_hidden_layers=3,
                    num_attention_heads=4,
                    intermediate_size=512,
                    mask_time_prob=0.0,
                    layerdrop=0.0,
                )
                m = T.Wav2Vec2ForCTC(c)
                x = torch.randn(4, 16000)
                lab = torch.randint(1, 30, (4, 10), device=dev)

                def loss():
                    return m(x, labels=lab).loss
            else:
                c = T.AutoConfig.for_model(name, num_labels=10)
                m = (
                    T.AutoModelForSemanticSegmentation if name == "segformer" else T.AutoModelForImageClassification
                ).from_config(c)
                x = torch.randn(4, 3, 224, 224)
                lab = (
                    torch.zeros(4, 224, 224, dtype=torch.long, device=dev)
                    if name == "segformer"
                    else torch.zeros(4, dtype=torch.long, device=dev)
                )

                def loss():
                    return m(pixel_values=x, labels=lab).loss
        else:
            c = T.AutoConfig.for_model(
                name,
                **{
                    k: v
                    for k, v in {**over, **more.get(name, {})}.items()
                    if not (
                        name == "xlnet"
                        and k == "max_position_embeddings"
                        or name == "funnel"
                        and k in ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
                    )
                },
            )
            if hasattr(c, "use_cache"):
                c.use_cache = False
            cls = (
                T.AutoModelForSeq2SeqLM
                if name in ("t5", "bart", "pegasus")
                else T.AutoModelForSpeechSeq2Seq
                if name == "whisper"
                else T.AutoModelForMaskedLM
                if name
                in (
                    "bert",
                    "roberta",
                    "distilbert",
                    "albert",
                    "electra",
                    "deberta-v2",
                    "funnel",
                    "longformer",
                    "big_bird",
                    "modernbert",
                )
                else T.AutoModelForCausalLM
            )
            m = cls.from_config(c)
            x = torch.randint(3, 2000, (4, 128))
            if index % 6 == 0 and getattr(m, "supports_gradient_checkpointing", False):
                m.gradient_checkpointing_enable()
            if name == "whisper":
                feats = torch.randn(4, 80, 600, device=dev)

                def loss():
                    return m(input_features=feats, labels=x).loss
            else:

                def loss():
                    return m(input_ids=x, labels=x).loss
    else:
        m, x, loss, own = own_job(name, dev)
    m.to(dev).train()
    if channels_last and x is not None and x.dim() == 4:
        m.to(memory_format=torch.channels_last)
        x = x.to(dev).contiguous(memory_format=torch.channels_last)
    elif x is not None:
        x = x.to(dev)
    if kind == "own":
        x = None
    P = [p for p in m.parameters() if p.requires_grad]
    O = torch.optim
    opt = {
        "adamw": lambda: O.AdamW(P, 1e-4),
        "sgdm": lambda: O.SGD(P, 1e-4, momentum=0.9),
        "adam-fused": lambda: O.Adam(P, 1e-4, fused=True),
        "rmsprop": lambda: O.RMSprop(P, 1e-5),
    }[optim]()
    if name == "sparse_embedding":
        opt = O.SparseAdam([p for p in P if p.shape[0] == 20000], 1e-3)
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "amp-fp16" and kind != "own")
    half = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(precision, torch.bfloat16)
    for step in range(4):
        opt.zero_grad()
        with torch.autocast("cuda", half, enabled=precision.startswith("amp") and kind != "own"):
            l = loss()
        scaler.scale(l).backward()
        if index % 2 and name != "sparse_embedding":
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(P, 1.0)
        scaler.step(opt)
        scaler.update()
        print(step, float(l))


def own_job(name, dev):
    import torch
    from torch import nn
    import torch.nn.functional as F

    r = lambda *s: torch.randn(*s, device=dev)
    if name == "lstm_lm":

        class M(nn.Module):
            def __init__(s):
                super().__init__()
                s.e = nn.Embedding(5000, 256)
                s.r = nn.LSTM(256, 512, 2, dropout=0.2, batch_first=True)
                s.o = nn.Linear(512, 5000)

            def forward(s, i):
                return s.o(s.r(s.e(i))[0])

        m = M()
        i = torch.randint(0, 5000, (32, 65), device=dev)
        return m, None, lambda: F.cross_entropy(m(i[:, :-1]).flatten(0, 1), i[:, 1:].flatten()), None
    if name == "bilstm_tagger":

        class M(nn.Module):
            def __init__(s):
                super().__init__()
                s.e = nn.Embedding(5000, 100)
                s.r = nn.LSTM(100, 128, 2, bidirectional=True, batch_first=True)
                s.o = nn.Linear(256, 20)

            def forward(s, i, n):
                p = nn.utils.rnn.pack_padded_sequence(s.e(i), n, batch_first=True, enforce_sorted=False)
                return s.o(nn.utils.rnn.pad_packed_sequence(s.r(p)[0], batch_first=True)[0])

        m = M()
        i = torch.randint(0, 5000, (32, 50), device=dev)
        n = torch.arange(19, 51)
        return m, None, lambda: m(i, n).logsumexp(-1).mean(), None
    if name == "gru_forecaster":

        class M(nn.Module):
            def __init__(s):
                super().__init__()
                s.r = nn.GRU(16, 128, 3, batch_first=True)
                s.o = nn.Linear(128, 1)

            def forward(s, x):
                return s.o(s.r(x)[0][:, -1])

        m = M()
        x = r(64, 96, 16)
        return m, None, lambda: m(x).square().mean(), None
    if name == "ctc_speech":

        class M(nn.Module):
            def __init__(s):
                super().__init__()
                s.c = nn.Conv1d(80, 256, 3, 2, 1)
                s.r = nn.GRU(256, 256, 3, bidirectional=True, batch_first=True)
                s.o = nn.Linear(512, 32)

            def forward(s, x):
                return s.o(s.r(s.c(x).relu().transpose(1, 2))[0])

        m = M()
        x = r(8, 80, 400)
        y = torch.randint(1, 32, (8, 30), device=dev)
        return (
            m,
            None,
            lambda: F.ctc_loss(m(x).log_softmax(-1).transpose(0, 1), y, torch.full((8,), 200), torch.full((8,), 30)),
            None,
        )
    if name == "unet3d":
        m = nn.Sequential(
            nn.Conv3d(1, 16, 3, padding=1),
            nn.InstanceNorm3d(16),
            nn.ReLU(),
            nn.Conv3d(16, 32, 3, stride=2, padding=1),
            nn.BatchNorm3d(32),
            nn.ReLU(),
            nn.ConvTranspose3d(32, 16, 2, stride=2),
            nn.Conv3d(16, 3, 1),
        )
        x = r(2, 1, 48, 48, 48)
        return m, None, lambda: F.cross_entropy(m(x), torch.zeros(2, 48, 48, 48, dtype=torch.long, device=dev)), None
    if name == "gcn":

        class M(nn.Module):
            def __init__(s):
                super().__init__()
                s.a = nn.Linear(128, 256)
                s.b = nn.Linear(256, 16)

            def forward(s, x, A):
                return s.b(torch.sparse.mm(A, s.a(x).relu()))

        m = M()
        n = 5000
        i = torch.stack([torch.arange(40000) % n, (torch.arange(40000) * 7919) % n])
        A = torch.sparse_coo_tensor(i, torch.ones(40000), (n, n)).coalesce().to(dev)
        x = r(n, 128)
        y = torch.randint(0, 16, (n,), device=dev)
        mask = torch.rand(n, device=dev) < 0.3
        return m, None, lambda: F.cross_entropy(m(x, A)[mask], y[mask]), None
    if name == "vq_vae":

        class M(nn.Module):
            def __init__(s):
                super().__init__()
                s.e = nn.Conv2d(3, 64, 4, 4)
                s.k = nn.Embedding(512, 64)
                s.d = nn.ConvTranspose2d(64, 3, 4, 4)

            def forward(s, x):
                z = s.e(x).permute(0, 2, 3, 1)
                f = z.reshape(-1, 64)
                i = torch.cdist(f, s.k.weight).argmin(1)
                q = s.k(i).view_as(z)
                torch.unique(i).numel()
                q2 = z + (q - z).detach()
                return (s.d(q2.permute(0, 3, 1, 2)) - x).square().mean() + (q - z.detach()).square().mean()

        m = M()
        x = r(16, 3, 64, 64)
        return m, None, lambda: m(x), None
    if name == "transformer_compile":
        e = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(256, 4, 512, batch_first=True), 2, enable_nested_tensor=False
        ).to(dev)
        c = torch.compile(e)
        x = r(8, 128, 256)
        return e, None, lambda: c(x).square().mean(), None
    if name == "resnet_compile":
        import torchvision

        e = torchvision.models.resnet18().to(dev)
        c = torch.compile(e)
        x = r(8, 3, 128, 128)
        return e, None, lambda: c(x).square().mean(), None
    if name == "ddpm_lr":
        m = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),
            nn.GroupNorm(8, 64),
            nn.SiLU(),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.GroupNorm(8, 64),
            nn.SiLU(),
            nn.Conv2d(64, 3, 3, padding=1),
        )
        x = r(16, 3, 64, 64)
        return m, None, lambda: (m(x + torch.randn_like(x)) - x).square().mean(), None
    if name == "wgan_gp":
        m = nn.Sequential(
            nn.Conv2d(3, 64, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(64, 128, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(128 * 256, 1),
        )
        x = r(32, 3, 64, 64)

        def loss():
            z = torch.randn_like(x)
            e = torch.rand(32, 1, 1, 1, device=dev)
            i = (e * x + (1 - e) * z).requires_grad_(True)
            (g,) = torch.autograd.grad(m(i).sum(), i, create_graph=True)
            return m(z).mean() - m(x).mean() + 10 * (g.flatten(1).norm(2, 1) - 1).square().mean()

        return m, None, loss, None
    if name == "a2c":
        m = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 8))
        x = r(512, 64)

        def loss():
            d = torch.distributions.Categorical(logits=m(x))
            a = d.sample()
            return -(d.log_prob(a) * torch.randn(512, device=dev)).mean() - 0.01 * d.entropy().mean()

        return m, None, loss, None
    if name == "sparse_embedding":

        class M(nn.Module):
            def __init__(s):
                super().__init__()
                s.e = nn.Embedding(20000, 64, sparse=True)
                s.o = nn.Linear(64, 10)

            def forward(s, i):
                return s.o(s.e(i).mean(1))

        m = M()
        i = torch.randint(0, 20000, (256, 20), device=dev)
        return m, None, lambda: m(i).square().mean(), None
    if name == "muon_like":
        m = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512))
        x = r(256, 512)

        def loss():
            for p in m.parameters():
                if p.grad is not None and p.dim() == 2:
                    g = p.grad.bfloat16()
                    g = g / (g.norm() + 1e-7)
                    for _ in range(5):
                        A = g @ g.T
                        g = 3.4445 * g + (-4.775 * A + 2.0315 * A @ A) @ g
                    p.data.add_(g, alpha=-1e-3)
            return m(x).square().mean()

        return m, None, loss, None
    if name == "cholesky_gp":
        m = nn.Linear(8, 4)
        x = r(800, 8)
        y = r(800, 1)

        def loss():
            f = m(x)
            K = torch.exp(-torch.cdist(f, f).square()) + torch.eye(800, device=dev)
            L = torch.linalg.cholesky(K)
            a = torch.cholesky_solve(y, L)
            return (y.T @ a).sum() + L.diagonal().log().sum()

        return m, None, loss, None
    if name == "fft_mixer":
        m = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128))
        x = r(16, 200, 128)
        return m, None, lambda: m(torch.fft.fft2(x).real).square().mean(), None


if __name__ == "__main__":
    main(sys.argv[1])
