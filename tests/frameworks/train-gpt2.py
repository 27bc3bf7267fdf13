"""transformers: training of GPT-2-small (batch 4 x 512, AdamW), and its generation."""
import os
import time

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from program import show, since_start, timed, train

torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
tokens = torch.randint(50257, (4, 512), device="cuda")
timed("import and model", since_start())


def step():
    loss = model(tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


train(step, 5, 20, torch.cuda.synchronize)
model.eval()
for when in ("first generation", "next generation"):
    begin = time.monotonic()
    made = model.generate(tokens[:1, :16], max_new_tokens=64, do_sample=False, pad_token_id=0)
    torch.cuda.synchronize()
    timed(f"{when} of 64 tokens", time.monotonic() - begin)
    show(when, made.cpu().numpy())
