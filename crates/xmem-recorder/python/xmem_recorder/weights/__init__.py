"""Files of weights that a script loads.

- `mapping`: files are mapped, where values do not matter;
- `pretrained`: models of transformers;
- `missing`: files that are not on this machine, and what helps;
- `standins`: what stands for those files (`xmem profile --without-weights`).

Checkpoints that a script saves are left to `virtual.checkpoints`, and conversions of large weights to
`virtual.host_memory`.
"""
