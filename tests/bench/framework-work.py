"""What tests/bench/framework-figures times: framework-work.py mlp | gpt2 builds a model, then does on each line of its input what that names.

It answers with lines `NAME MILLISECONDS RESULT`, and `ready` when it waits. Results are the same in every process that is asked the same.
"""
import os
import sys
import time

if sys.argv[1] == "gpt2":
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # what deterministic products need; PyTorch parses it at each product
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "frameworks"))
from program import since_start


def answer(name, seconds, result):
    print(f"{name} {seconds * 1e3:.3f} {result}", flush=True)


imported = since_start()
first = torch.ones(4, device="cuda").sum().item()
answer("import and first tensor", since_start(), first)
answer("– import alone", imported, "")
torch.manual_seed(1)


def mlp():
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)).cuda()
    inputs, targets = torch.randn(64, 256, device="cuda"), torch.randint(10, (64,), device="cuda")
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3), lambda: torch.nn.functional.cross_entropy(model(inputs), targets)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.use_deterministic_algorithms(True)
    model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).cuda()
    tokens = torch.randint(50257, (4, 512), device="cuda")
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), lambda: model(tokens, labels=tokens).loss, tokens


def steps(count):
    for _ in range(count):
        loss = forward()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return loss


def generate():
    model.eval()
    made = model.generate(tokens[0][:1, :16], max_new_tokens=64, do_sample=False, pad_token_id=0)
    model.train()
    return made.sum().item()


work = {"mlp": mlp, "gpt2": gpt2}[sys.argv[1]]
model, optimizer, forward, *tokens = work()
steps(5)
print("ready", flush=True)
for line in sys.stdin:
    asked = line.split()
    begin = time.monotonic()
    if asked[0] == "generate":
        result = generate()
        answer(" ".join(asked), time.monotonic() - begin, result)
    else:
        count = int(asked[1])
        result = steps(count).item()
        answer("step", (time.monotonic() - begin) / count, f"{result:.9g}")
    print("ready", flush=True)
