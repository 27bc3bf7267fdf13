"""PyTorch: training of 8 layers of 256, batch 64: bound by launches."""

import torch

from models import mlp
from program import show, since_start, timed, train

model, step = mlp()
timed("import and model", since_start())
train(step, 20, 300, torch.cuda.synchronize)
show("weights", model[0].weight.detach().cpu().numpy())
