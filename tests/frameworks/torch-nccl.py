"""PyTorch: torch.distributed over NCCL, a group of one process, whose communicator is used before and after the pause point."""
import tempfile

import torch
from torch import distributed

from program import pause_point, show


def all_reduce(name, operation):
    values = torch.arange(1 << 20, dtype=torch.float32).cuda()
    distributed.all_reduce(values, operation)
    show(name, values.cpu().numpy())


def collectives():
    twice = distributed._make_nccl_premul_sum(2.0)  # in a group of one process, NCCL launches a kernel only if there is a factor
    all_reduce("sum", distributed.ReduceOp.SUM)
    all_reduce("sum of twice the values", twice)
    pause_point()
    all_reduce("sum, again", distributed.ReduceOp.SUM)
    all_reduce("sum of twice the values, again", twice)

    values = torch.arange(1000, dtype=torch.float32).cuda()
    gathered = torch.empty_like(values)
    distributed.all_gather_into_tensor(gathered, values)
    show("gathered", gathered.cpu().numpy())
    distributed.broadcast(values, 0)
    show("broadcast", values.cpu().numpy())
    distributed.barrier(device_ids=[0])
    print("barrier passed")


with tempfile.TemporaryDirectory(prefix="vgpu-nccl-") as folder:
    distributed.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1)
    try:
        collectives()
    finally:  # before the folder is removed: PyTorch's heartbeat waits for the store's file
        distributed.destroy_process_group()
