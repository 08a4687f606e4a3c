"""One process of a distributed job, which runs without the others (`xmem profile --ranks`).

The environment gives the process its rank, as a launcher does; what would wait for other processes does not:

- `place`: the place of the recorded process in its job;
- `process`: what is prepared in that process once torch is imported;
- `launchers`: launchers start one process;
- `stores`: stores answer at once;
- `collectives`, `reducer`: process groups of the host, which have no one to talk to;
- `messages`: objects and few integers from another process, which runs for them;
- `agreements`: comparisons with other ranks that DeepSpeed makes.

Process groups of NCCL are left to the virtual GPU; on the CPU they are of the host (`cpu.distributed`).
"""
