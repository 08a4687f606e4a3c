"""`torch.cuda` reports the facts of the device profile."""
# /// xmem
# iterations = 1
# options = ["--steps", "1"]
# stdout = [
#   "available True count 1 current 0 device cuda:0",
#   "NVIDIA A100-SXM4-40GB (8, 0) 42405462016 108",
#   "free is below total: True",
#   "bf16 True sm_80",
#   "default cuda True",
#   "streams and events work: True",
#   "the selected stream is the current one: True True",
#   "random states work: True",
#   "memory counters are numbers: True",
# ]
# ///
import torch
from torch import nn

print("available", torch.cuda.is_available(), "count", torch.cuda.device_count(), "current",
      torch.cuda.current_device(), "device", torch.zeros(1, device="cuda").device)
properties = torch.cuda.get_device_properties(0)
assert properties.name == torch.cuda.get_device_name()
assert (properties.major, properties.minor) == torch.cuda.get_device_capability("cuda:0")
print(properties.name, torch.cuda.get_device_capability(), properties.total_memory,
      properties.multi_processor_count)
free, total = torch.cuda.mem_get_info()
assert total == properties.total_memory
print("free is below total:", 0 < free < total)
print("bf16", torch.cuda.is_bf16_supported(), f"sm_{properties.major}{properties.minor}")
torch.cuda.init()
print("default", torch.device("cuda").type, torch.cuda.is_initialized())

start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
stream = torch.cuda.Stream()
start.record()
with torch.cuda.stream(stream):
    product = torch.randn(64, 64, device="cuda") @ torch.randn(64, 64, device="cuda")
    product.record_stream(stream)
torch.cuda.current_stream().wait_stream(stream)
end.record()
end.synchronize()
torch.cuda.synchronize()
print("streams and events work:", start.elapsed_time(end) >= 0 and end.query() and stream.query())
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    selected = torch.cuda.current_stream() == side != stream
print("the selected stream is the current one:", selected,
      torch.cuda.current_stream() == torch.cuda.default_stream() != side)

torch.cuda.manual_seed(3)
torch.cuda.manual_seed_all(3)
state = torch.cuda.get_rng_state()
first = torch.rand(2, device="cuda")
torch.cuda.set_rng_state(state)
torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
print("random states work:", state.dtype == torch.uint8 and first.shape == (2,))

torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
counters = [torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(),
            torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved(),
            torch.cuda.memory_stats().get("allocated_bytes.all.current", 0)]
print("memory counters are numbers:", all(isinstance(counter, (int, float)) for counter in counters))
assert isinstance(torch.cuda.memory_summary(), str)
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
with torch.cuda.device(0):
    model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(product).sum().backward()
optimizer.step()
