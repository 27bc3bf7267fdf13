"""Numba: kernels with shared and constant memory, atomics, device functions, a reduction, random numbers, streams, events, pinned and
mapped arrays."""
import math

import numpy
from numba import cuda, float32, int32
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

from program import pause_point, show, since_start, timed

COUNT, TILE, SIDE = 1 << 20, 16, 256
WEIGHTS = numpy.array([1, 4, 6, 4, 1], dtype=numpy.float32) / 16


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit(device=True)
def clamp(value, low, high):
    return min(max(value, low), high)


@cuda.jit
def smooth(values, out):
    weights = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    if i >= values.size:
        return
    total = float32(0)
    for k in range(5):
        total += weights[k] * values[clamp(i + k - 2, 0, values.size - 1)]
    out[i] = total


@cuda.jit
def multiply(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // TILE):
        left[tx, ty] = a[x, ty + tile * TILE]
        right[tx, ty] = b[tx + tile * TILE, y]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[tx, k] * right[k, ty]
        cuda.syncthreads()
    c[x, y] = total


@cuda.jit
def histogram(values, bins):
    local = cuda.shared.array(64, int32)
    if cuda.threadIdx.x < 64:
        local[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(local, int(clamp(values[i] * 8 + 32, 0, 63)), 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 64:
        cuda.atomic.add(bins, cuda.threadIdx.x, local[cuda.threadIdx.x])


@cuda.jit
def draw(states, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = math.floor(xoroshiro128p_uniform_float32(states, i) * 1000)


@cuda.reduce
def largest(a, b):
    return max(a, b)


values = numpy.random.default_rng(1).standard_normal(COUNT, dtype=numpy.float32)
first = cuda.to_device(values)
timed("import and first array", since_start())
out = cuda.device_array_like(first)
add[COUNT // 256, 256](first, first, out)
show("sum of two", out.copy_to_host())
smooth[COUNT // 256, 256](first, out)
show("smoothed", out.copy_to_host())
bins = cuda.to_device(numpy.zeros(64, dtype=numpy.int32))
histogram[64, 256](first, bins)
show("histogram", bins.copy_to_host())
show("largest", numpy.array(largest(first)))

a = cuda.to_device(values[: SIDE * SIDE].reshape(SIDE, SIDE).copy())
b = cuda.to_device(values[SIDE * SIDE : 2 * SIDE * SIDE].reshape(SIDE, SIDE).copy())
product = cuda.device_array((SIDE, SIDE), dtype=numpy.float32)
states = create_xoroshiro128p_states(4096, seed=7)
drawn = cuda.device_array(4096, dtype=numpy.float32)
pause_point()
multiply[(SIDE // TILE, SIDE // TILE), (TILE, TILE)](a, b, product)
show("product", product.copy_to_host())
for _ in range(2):
    draw[16, 256](states, drawn)
show("random numbers", drawn.copy_to_host())

pinned = cuda.pinned_array(COUNT, dtype=numpy.float32)
pinned[:] = values
streams = [cuda.stream() for _ in range(4)]
begin, end = cuda.event(), cuda.event()
begin.record(streams[0])
part = COUNT // len(streams)
for number, stream in enumerate(streams):
    piece = pinned[number * part : (number + 1) * part]
    there = cuda.to_device(piece, stream=stream)
    add[part // 256, 256, stream](there, there, there)
    there.copy_to_host(piece, stream=stream)
for stream in streams:
    stream.synchronize()
end.record(streams[0])
end.synchronize()
assert begin.elapsed_time(end) >= 0
show("pinned, in streams", pinned)

mapped = cuda.mapped_array(4096, dtype=numpy.float32)
mapped[:] = values[:4096]
add[16, 256](mapped, mapped, mapped)
cuda.synchronize()
show("mapped", mapped)
