"""What is noted about a run, for the metadata of its trace.

- `metadata`: the whole, as JSON (`plain`);
- `model_facts`, `optimizer_facts`, `storages`: models, optimizers, and the memory of their tensors;
- `job`, `sharding`, `strategies`: the place of the process in its job, and how the job is distributed;
- `precision`, `memory_fraction`, `cudnn`: settings of the script, noted while it runs.

What changes a run is left to the packages of the engines, the count of its iterations to `recording`. What a virtual
GPU adds is in `virtual.device_facts`.
"""
