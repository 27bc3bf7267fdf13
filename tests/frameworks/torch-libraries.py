"""PyTorch: libraries that run in the program with their own runtime, which is redirected: cuDNN (a convolutional network trained, an
LSTM), cuSOLVER, cuSPARSE. Their handles, workspaces and kernels are used before and after the pause."""
import time

import torch

from program import pause_point, show, timed

torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
torch.backends.cuda.preferred_linalg_library("cusolver")
network = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 3, stride=2),
    torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 15 * 15, 10)).cuda()
memory = torch.nn.LSTM(16, 32, 2).cuda()
images, classes = torch.randn(16, 3, 32, 32, device="cuda"), torch.arange(16, device="cuda") % 10
sequence = torch.randn(5, 3, 16, device="cuda")
matrix = torch.randn(64, 64, device="cuda", dtype=torch.float64)
# Integers: their sums are exact in any order.
whole = torch.randint(-4, 5, (64, 64), device="cuda").float()
sparse = whole.relu().to_sparse_csr()
optimizer = torch.optim.SGD(network.parameters(), 0.05)


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(network(images), classes)
    loss.backward()
    optimizer.step()
    return loss


def round_of(name):
    for number in range(5):
        print(f"{name} loss {number} {step().item():.9g}", flush=True)
    hidden, _ = memory(sequence)
    hidden.sum().backward()
    show(f"{name} LSTM", hidden.detach().cpu().numpy())
    show(f"{name} LSTM gradient", memory.weight_ih_l0.grad.cpu().numpy())
    show(f"{name} solve", torch.linalg.solve(matrix, matrix[:, :3]).cpu().numpy())
    show(f"{name} eigenvalues", torch.linalg.eigvalsh(matrix @ matrix.T).cpu().numpy())
    show(f"{name} singular values", torch.linalg.svdvals(matrix).cpu().numpy())
    show(f"{name} sparse product", (sparse @ whole).cpu().numpy())


round_of("first")
pause_point()
round_of("second")
torch.cuda.synchronize()
begin = time.monotonic()
for _ in range(100):
    step()
torch.cuda.synchronize()
timed("step of the convolutional network", (time.monotonic() - begin) / 100)
