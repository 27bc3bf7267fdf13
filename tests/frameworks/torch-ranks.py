"""PyTorch: NCCL between two processes, each with a GPU of its own: collectives, point to point, and a model that both train. The
communicator is used before and after the pause point, at which both processes are saved."""
import os
import tempfile

# Not every machine with two GPUs has multicast over NVLink.
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import torch
import torch.multiprocessing as processes
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from program import pause_point, show

RANKS = 2
SIZES = (1, 1000, 1 << 20)  # NCCL uses other protocols for short messages


def values(rank, size):
    return (torch.arange(size, dtype=torch.float32) % 1009 + rank).cuda()


def collectives(rank, say):
    for size in SIZES:
        summed = values(rank, size)
        distributed.all_reduce(summed)
        say(f"sum of {size}", summed)
        gathered = torch.empty(RANKS * size, device="cuda")
        distributed.all_gather_into_tensor(gathered, values(rank, size))
        say(f"gathered {size}", gathered)
        scattered = torch.empty(size, device="cuda")
        distributed.reduce_scatter_tensor(scattered, torch.cat([values(rank, size)] * RANKS))
        say(f"scattered sums of {size}", scattered)
        sent = values(rank, size)
        distributed.broadcast(sent, 1)
        say(f"broadcast {size}", sent)
        got = torch.empty(size, device="cuda")
        for work in distributed.batch_isend_irecv([
                distributed.P2POp(distributed.isend, sent * (rank + 2), 1 - rank),
                distributed.P2POp(distributed.irecv, got, 1 - rank)]):
            work.wait()
        say(f"from the other {size}", got)


def train(rank, steps, model, optimizer):
    for step in range(steps):
        generator = torch.Generator().manual_seed(1000 * step + rank)
        batch = torch.randn(32, 64, generator=generator).cuda()
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"loss {loss.item():.9g}", flush=True)


# The processes wait for each other on the host: an NCCL barrier would be a kernel that does not end while the other process is held.
def together_on_host(rank):
    store = distributed.distributed_c10d._get_default_store()
    if rank == 0:
        store.wait(["the other is here"])
        pause_point()
        store.set("go on", "")
    else:
        store.set("the other is here", "")
        store.wait(["go on"])


def run(rank, store):
    def say(name, tensor):
        if rank == 0:
            show(name, tensor.cpu().numpy())

    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=RANKS,
                                   device_id=torch.device("cuda", rank))
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64)).cuda()
    model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    collectives(rank, say)
    train(rank, 3, model, optimizer)
    torch.cuda.synchronize()
    together_on_host(rank)
    collectives(rank, say)
    train(rank, 3, model, optimizer)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    context = processes.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="vgpu-ranks-") as folder:
        other = context.Process(target=run, args=(1, f"{folder}/store"))
        other.start()
        run(0, f"{folder}/store")
        other.join()
    print("exit code", other.exitcode)
