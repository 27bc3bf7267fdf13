"""PyTorch: a tensor that two processes share (torch.multiprocessing over CUDA's IPC)."""
import torch
import torch.multiprocessing as processes

from program import pause_point, show


def double(queue, done):
    tensor = queue.get()
    while queue.get():
        tensor *= 2
        torch.cuda.synchronize()
        done.put(True)


if __name__ == "__main__":
    context = processes.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    child = context.Process(target=double, args=(queue, done))
    child.start()
    tensor = torch.arange(1000, dtype=torch.float32, device="cuda")
    queue.put(tensor)
    for times in ("once", "twice"):
        queue.put(True)
        done.get()
        show(f"doubled {times} by the other process", tensor.cpu().numpy())
        if times == "once":
            pause_point()
    queue.put(False)
    child.join()
    print("exit code", child.exitcode)
