"""PyTorch: tensors, indexing, reductions, autograd, streams and events, a captured graph, expandable segments."""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch

from program import pause_point, show, since_start, timed

first = torch.ones(4, device="cuda").sum().item()
timed("import and first tensor", since_start())
torch.manual_seed(1)
print("first", first, torch.cuda.get_device_name(), torch.cuda.get_device_capability(), torch.cuda.device_count())
values = torch.randn(1024, 1024, device="cuda")
show("random numbers", values.cpu().numpy())
show("indexing", values[torch.arange(0, 1024, 3, device="cuda"), 5:900:7].cpu().numpy())
show("masked", values[values > 2].cpu().numpy())
show("sum", values.sum().cpu().numpy())
show("rows", values.logsumexp(dim=1).cpu().numpy())
show("sorted", values.flatten().sort().values.cpu().numpy())
show("top", values.topk(10, dim=0).indices.cpu().numpy())
show("product", (values @ values).cpu().numpy())
show("product, half", (values.half() @ values.half()).cpu().numpy())

weight = torch.randn(1024, 16, device="cuda", requires_grad=True)
loss = torch.nn.functional.cross_entropy(values @ weight, torch.arange(1024, device="cuda") % 16)
loss.backward()
show("loss", loss.detach().cpu().numpy())
show("gradient", weight.grad.cpu().numpy())

side, begin, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def in_other_stream(factor):
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        begin.record()
        scaled = values * factor
        end.record()
    end.synchronize()
    print("the event's time is more than nothing:", begin.elapsed_time(end) > 0)
    show(f"other stream, times {factor}", scaled.cpu().numpy())


def show_sums(name, tensors):
    show(name, torch.stack([tensor.sum() for tensor in tensors]).cpu().numpy())


in_other_stream(3)
parts = [torch.randn(n * 100_000, device="cuda") for n in range(1, 30)]
show_sums("segments that grow", parts)

layer = torch.nn.Linear(1024, 1024).cuda()
static = values.clone()
with torch.no_grad():
    layer(static)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        replayed = torch.relu(layer(static)) + 1


def replay(run):
    static.copy_(torch.randn(1024, 1024, device="cuda"))
    graph.replay()
    show(f"graph, run {run}", replayed.cpu().numpy())


replay(0)
pause_point()
replay(1)
in_other_stream(5)
show_sums("segments that grow, kept", parts)
del parts
torch.cuda.empty_cache()
show_sums("segments that grow again", [torch.randn(n * 100_000, device="cuda") for n in range(1, 30)])
with torch.no_grad():
    layer.weight.mul_(2)
replay(2)
print("memory in use", torch.cuda.memory_allocated())
