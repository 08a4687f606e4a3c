"""The virtual GPU: PyTorch's CUDA build runs as it is, and no kernel computes.

- `gpu`: what is prepared in PyTorch, and the parts below;
- `library`: the stand-ins for CUDA's libraries, which are loaded before torch;
- `values`, `known`: values of small tensors that follow from the host, and what is known of each tensor;
- `sizes`, `choices`, `assumptions`: sizes and places that follow from values, or from assumptions about them;
- `branches`: the branch that raises nothing, where the script tests a value that is not known;
- `backward`, `written`, `integers`: values in backward passes, what kernels write, and integers that the script reads;
- `extensions`: extensions that a script would compile, such as optimizers of DeepSpeed;
- `compilation`, `autotuning`: compiled code, in which no values are kept, and Triton's choice among configurations;
- `host_memory`, `random_numbers`: parameters that are not initialized on the host, and the numbers that this would draw;
- `history`, `activity`: the history of the allocator, and what streams are told;
- `peaks`, `outside`: peaks of memory in the allocator and outside of it;
- `checkpoints`: files of weights that the script saves;
- `nccl`, `objects`, `shapes`: collectives of PyTorch, and Python objects and few integers from one process to another;
- `received`: integers that another rank broadcasts, once the script uses them;
- `device_facts`: the metadata about the device and its memory.

The choice of the engine is left to `engine`, files of weights that the script loads to `weights`.
"""
