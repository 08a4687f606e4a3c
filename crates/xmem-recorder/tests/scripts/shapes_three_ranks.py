"""Three stages, of which two receive the shape of their input as a tensor, as DeepSpeed's pipelines do."""
# /// xmem
# options = ["--gpus", "3", "--steps", "3"]
# command = ["{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", "{script}"]
# iterations = 3
# skip-on-cpu = "the stages send tensors with NCCL"
# [virtual-gpu]
# stdout = ["rank 2 of 3 receives [48, 1024]"]
# ///
import os
import runpy

runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "one_rank_shapes.py"), run_name="__main__")
