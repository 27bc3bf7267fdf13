"""Triton: vector addition, softmax, a product of matrices by tensor maps, autotuning."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from program import pause_point, show, since_start, timed


@triton.jit
def add(a, b, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(out + at, tl.load(a + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)


@triton.jit
def softmax(rows, out, columns, stride, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(rows + row * stride + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def product(a, b, c, K, M_BLOCK: tl.constexpr, N_BLOCK: tl.constexpr, K_BLOCK: tl.constexpr):
    m, n = tl.program_id(0) * M_BLOCK, tl.program_id(1) * N_BLOCK
    sums = tl.zeros((M_BLOCK, N_BLOCK), dtype=tl.float32)
    for k in range(0, K, K_BLOCK):
        sums = tl.dot(a.load([m, k]), b.load([k, n]), sums)
    c.store([m, n], sums.to(tl.float16))


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024})], key=["count"])
@triton.jit
def double(values, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(values + at, mask=at < count), mask=at < count)


torch.manual_seed(1)
a, b = torch.randn(100_000, device="cuda"), torch.randn(100_000, device="cuda")
timed("import and first tensor", since_start())
out = torch.empty_like(a)
add[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024)
show("vector addition", out.cpu().numpy())

rows = torch.randn(512, 1000, device="cuda")
out = torch.empty_like(rows)
softmax[(512,)](rows, out, 1000, rows.stride(0), BLOCK=1024)
show("softmax", out.cpu().numpy())
pause_point()

a, b = (torch.randn(512, 512, device="cuda", dtype=torch.float16) for _ in range(2))
c = torch.empty_like(a)
maps = [TensorDescriptor.from_tensor(matrix, [64, 64]) for matrix in (a, b, c)]
product[(8, 8)](*maps, 512, M_BLOCK=64, N_BLOCK=64, K_BLOCK=64)
show("product by tensor maps", c.cpu().numpy())

out = torch.empty_like(rows)
double[lambda meta: (triton.cdiv(rows.numel(), meta["BLOCK"]),)](rows, out, rows.numel())
show("autotuned", out.cpu().numpy())
