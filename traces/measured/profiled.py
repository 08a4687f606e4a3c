"""Profiler traces of a GPU, with its kernels and the events of its allocator: profiled.py OUT

For each job OUT/NAME.json.gz (torch.profiler's trace of three iterations), OUT/NAME.pickle (the memory snapshot of the whole
run), and a line of OUT/profiled.jsonl with the peaks and the seconds of iterations without the profiler.
"""

import json, os, pickle, sys, time, warnings

warnings.filterwarnings("ignore")
import torch
import torch.nn.functional as F

NAMES = "resnet18 gpt2 vgg11 swin_t".split()


def step(name):
    import torchvision

    torch.manual_seed(0)
    if name == "gpt2":
        import transformers

        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=6, n_embd=384, n_head=6)).cuda()
        x = torch.randint(0, 50000, (8, 256), device="cuda")
        loss = lambda: model(input_ids=x, labels=x).loss
    else:
        model = getattr(torchvision.models, name)().cuda()
        x, y = torch.randn(32, 3, 224, 224, device="cuda"), torch.zeros(32, dtype=torch.long, device="cuda")
        loss = lambda: F.cross_entropy(model(x), y)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def run():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return run


def main(out):
    os.makedirs(out, exist_ok=True)
    for name in NAMES:
        torch.cuda.memory._record_memory_history("all", context=None)
        run = step(name)
        for _ in range(2):
            run()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(5):
            run()
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / 5
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        torch.cuda.reset_peak_memory_stats()
        with torch.profiler.profile(
            activities=activities, profile_memory=True, record_shapes=True, with_stack=True
        ) as p:
            for _ in range(3):
                run()
                p.step()
        peaks = dict(allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved())
        p.export_chrome_trace(f"{out}/{name}.json.gz")
        pickle.dump(torch.cuda.memory._snapshot(), open(f"{out}/{name}.pickle", "wb"))
        torch.cuda.memory._record_memory_history(None)
        with open(f"{out}/profiled.jsonl", "a") as f:
            f.write(json.dumps(dict(job=name, seconds=seconds, **peaks)) + "\n")
        print(name, seconds, peaks, os.path.getsize(f"{out}/{name}.json.gz"), flush=True)
        del run, p
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


if __name__ == "__main__":
    main(sys.argv[1])
