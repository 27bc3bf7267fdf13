"""PyTorch: torch.distributed over NCCL, a group of one process, whose communicator lives over the pause point."""
import tempfile

import torch
from torch import distributed

from program import pause_point, show


def all_reduce(name, operation):
    values = torch.arange(1 << 20, dtype=torch.float32).cuda()
    distributed.all_reduce(values, operation)
    show(name, values.cpu().numpy())


def all_gather(name):
    values = torch.arange(1 << 20, dtype=torch.float32).cuda()
    gathered = torch.empty_like(values)
    distributed.all_gather_into_tensor(gathered, values)
    show(name, gathered.cpu().numpy())


with tempfile.TemporaryDirectory(prefix="vgpu-nccl-") as folder:
    distributed.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1, device_id=torch.device("cuda", 0))
    twice = distributed._make_nccl_premul_sum(2.0)  # alone in a group, only a factor has NCCL launch a kernel
    all_reduce("sum", distributed.ReduceOp.SUM)
    all_reduce("sum of twice the values", twice)
    pause_point()
    all_reduce("sum, again", distributed.ReduceOp.SUM)
    all_reduce("sum of twice the values, again", twice)
    all_gather("gathered")
    values = torch.arange(1000).cuda()
    distributed.broadcast(values, 0)
    show("broadcast", values.cpu().numpy())
    distributed.barrier()
    print("barrier passed")
    distributed.destroy_process_group()
