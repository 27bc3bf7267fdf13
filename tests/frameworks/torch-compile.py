"""PyTorch: a compiled function, with a graph (reduce-overhead) and without."""

import torch

from program import pause_point, show, since_start, timed

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 10)).cuda()
batch = torch.randn(64, 256, device="cuda")
compiled = torch.compile(model)
show("compiled", compiled(batch).detach().cpu().numpy())
loss = compiled(batch).logsumexp(dim=1).sum()
loss.backward()
show("gradient", model[0].weight.grad.cpu().numpy())
fast = torch.compile(model, mode="reduce-overhead")


def show_fast(run):
    with torch.no_grad():
        show(f"with a graph, run {run}", fast(batch + run).clone().cpu().numpy())


for run in range(3):  # the second run captures, the third one replays
    show_fast(run)
pause_point()
for run in range(3, 5):
    show_fast(run)
show("compiled, other inputs", compiled(batch * 2).detach().cpu().numpy())
timed("all", since_start())
