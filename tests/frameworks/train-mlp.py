"""PyTorch: training of 8 layers of 256, batch 64: bound by launches."""

import torch

from program import show, since_start, timed, train

torch.manual_seed(1)
layers = [layer for _ in range(8) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, targets = torch.randn(64, 256, device="cuda"), torch.randint(10, (64,), device="cuda")
timed("import and model", since_start())


def step():
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


train(step, 20, 300, torch.cuda.synchronize)
show("weights", model[0].weight.detach().cpu().numpy())
