"""PyTorch: training of 8 layers of 256, batch 64: bound by launches."""
import time

import torch

from program import pause_point, show, started, timed

torch.manual_seed(1)
layers = [layer for _ in range(8) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, targets = torch.randn(64, 256, device="cuda"), torch.randint(10, (64,), device="cuda")
timed("import and first tensor", time.monotonic() - started)


def step():
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


for number in range(20):
    print(f"loss {number} {step().item():.9g}", flush=True)
pause_point()
torch.cuda.synchronize()
begin = time.monotonic()
for _ in range(300):
    loss = step()
torch.cuda.synchronize()
timed("step", (time.monotonic() - begin) / 300)
print(f"loss 320 {loss.item():.9g}")
show("weights", model[0].weight.detach().cpu().numpy())
