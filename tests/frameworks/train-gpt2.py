"""transformers: training of GPT-2-small (batch 4 x 512, AdamW), and its generation."""
import os
import time

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch

from models import gpt2
from program import show, since_start, timed, train

model, step, generate = gpt2()
timed("import and model", since_start())
train(step, 5, 20, torch.cuda.synchronize)
model.eval()
for when in ("first generation", "next generation"):
    begin = time.monotonic()
    made = generate()
    torch.cuda.synchronize()
    timed(f"{when} of 64 tokens", time.monotonic() - begin)
    show(when, made.cpu().numpy())
