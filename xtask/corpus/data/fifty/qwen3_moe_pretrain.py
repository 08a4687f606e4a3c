# Pre-training a tiny mixture of experts (transformers) with its router loss
import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM, get_cosine_schedule_with_warmup

torch.manual_seed(0)
config = Qwen3MoeConfig(
    vocab_size=8192,
    hidden_size=384,
    intermediate_size=1024,
    moe_intermediate_size=256,
    num_hidden_layers=4,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=64,
    num_experts=16,
    num_experts_per_tok=4,
    output_router_logits=True,
    router_aux_loss_coef=0.01,
    use_cache=False,
)
model = Qwen3MoeForCausalLM(config).to("cuda")
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
sched = get_cosine_schedule_with_warmup(opt, 2, 10)
for step in range(6):
    ids = torch.randint(0, 8192, (4, 256), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    opt.zero_grad()
    print(step, out.loss.item(), out.aux_loss.item())
model.save_pretrained("qwen3-moe")
