"""The work that tests/bench/framework-figures times: framework-work.py mlp | gpt2 builds a model, then executes each line of its input.

It prints lines `NAME MILLISECONDS RESULT`, and `ready` when it waits. Results are the same in every process that does the same.
"""
import os
import sys
import time

if sys.argv[1] == "gpt2":
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # deterministic products need it; PyTorch parses it at each product
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "frameworks"))
from models import gpt2, mlp
from program import since_start


def answer(name, seconds, result):
    print(f"{name} {seconds * 1e3:.3f} {result}", flush=True)


imported = since_start()
first = torch.ones(4, device="cuda").sum().item()
answer("import and first tensor", since_start(), first)
answer("– import alone", imported, "")


def steps(count):
    for _ in range(count):
        loss = step()
    torch.cuda.synchronize()
    return loss


def generation():
    model.eval()
    made = generate[0]()
    model.train()
    return made.sum().item()


model, step, *generate = {"mlp": mlp, "gpt2": gpt2}[sys.argv[1]]()
steps(5)
print("ready", flush=True)
for line in sys.stdin:
    asked = line.split()
    begin = time.monotonic()
    if asked[0] == "generate":
        result = generation()
        answer(" ".join(asked), time.monotonic() - begin, result)
    else:
        count = int(asked[1])
        result = steps(count).item()
        answer("step", (time.monotonic() - begin) / count, f"{result:.9g}")
    print("ready", flush=True)
