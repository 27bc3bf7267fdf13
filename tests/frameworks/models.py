"""The two models that are trained here and timed by tests/bench/framework-figures. Their results are the same in every process.

Only torch is imported before a model is made. GPT-2 needs CUBLAS_WORKSPACE_CONFIG=:4096:8, for deterministic products: set it before
torch is imported.
"""
import torch


def stepper(optimizer, forward):
    """Returns a function that trains once and returns the loss, which `forward` computes."""
    def step():
        loss = forward()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp():
    """8 layers of 256, batch 64: the model, and the function that trains it once."""
    torch.manual_seed(1)
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, targets = torch.randn(64, 256, device="cuda"), torch.randint(10, (64,), device="cuda")
    return model, stepper(optimizer, lambda: torch.nn.functional.cross_entropy(model(inputs), targets))


def gpt2():
    """GPT-2-small, batch 4 x 512: the model, the function that trains it once, and one that generates 64 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(50257, (4, 512), device="cuda")

    def generate():
        return model.generate(tokens[:1, :16], max_new_tokens=64, do_sample=False, pad_token_id=0)

    return model, stepper(optimizer, lambda: model(tokens, labels=tokens).loss), generate
