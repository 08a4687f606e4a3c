"""CUDA's interface on the CPU: what a script asks of a GPU is answered, and its tensors stay on the host.

- `redirect`: the parts below, installed in their order; `redirected` counts what they redirect;
- `places`, `placement`: the tensors that would be on the GPU, and their marks in the trace;
- `devices`: the device that a script means;
- `tensors`, `tensor_types`, `factories`, `loading`: what moves, makes and loads tensors;
- `cuda`, `accelerator`, `streams`, `counters`: the modules `torch.cuda` and `torch.accelerator`;
- `host_optimizers`: optimizers of parameters that stay on the host;
- `autocast`, `autocast_lists`, `attention`, `optimizer_options`, `eager`: options that the CPU lacks;
- `distributed`: process groups of the host in place of NCCL.

Every wrapper keeps the signature, the results and the errors of the wrapped function wherever no CUDA device is meant.
What a script asked for is left to `facts`.
"""
