"""The graph of a training script, as torch.export writes it, with what its loop adds: `xmem export`.

- `structures`: tensors inside arguments and results;
- `tape`: the calls of models, and the functions between them and the loss;
- `course`: what the loop does around them: gradients, steps, clipping, scaling, checkpoints;
- `watch`: the functions of torch that are wrapped to fill these two, and when the run ends;
- `names`: the names of models, parameters and inputs;
- `program`: a module that repeats what the tape holds;
- `exporting`: torch.export of that module, with as many dynamic dimensions as it allows;
- `job`: the description of the loop, for the archive;
- `archive`: the archive, without weights.

The run is on the CPU, up to the call that follows the first step of each optimizer; that step itself is left out.
"""
