"""The recording of a script with torch's profiler: its begin, its iterations, its end.

- `watch`: the functions of PyTorch that are wrapped, and the parts below;
- `run`: whether the recording runs, on which thread, and marks in the trace;
- `begin`, `end`: what begins and ends it;
- `calls`, `steps`, `iterations`: calls of models, steps of optimizers, and the iterations that they make;
- `forward`, `backward`, `stepping`: the functions that show them; `passes`: scripts without a step of an optimizer;
- `evaluation`, `lengths`: calls that are not computed, and batches of other lengths, on request;
- `after_steps`, `rest`: what follows the recorded iterations on a virtual GPU; `abridged`: the same on the CPU;
- `parts`, `expected`, `following`, `sources`: what the script does, and what its source says that it will do;
- `loaders`, `batches`, `growth`, `trainers`: passes over data, of which batches are left out;
- `memory`: the limit to the memory of the process;
- `export`, `lines`: the trace, and the lines of the script;
- `allocators`: allocators of the script, which are left out;
- `replicas`, `swapping`, `transforms`: parts of PyTorch that the profiler would miss or disturb.

The recording begins when the first module is made or the first tensor goes to the GPU, after the imports. The profiler
itself is left to `profilers`, the metadata to `facts`.
"""
