"""CuPy: elementwise kernels, reductions, sort, RawKernel, RawModule, a captured graph, the stream-ordered pool."""

import cupy
import numpy

from program import pause_point, show, since_start, timed

first = cupy.arange(10)
timed("import and first array", since_start())
numbers = cupy.asarray(numpy.random.default_rng(1).standard_normal((1 << 20,), dtype=numpy.float32))
show("elementwise", cupy.asnumpy(cupy.sqrt(cupy.abs(numbers)) * 2 + first.sum()))
show("sum", cupy.asnumpy(numbers.sum()))
show("sum of rows", cupy.asnumpy(numbers.reshape(1024, 1024).sum(axis=1)))
show("argmax", cupy.asnumpy(numbers.argmax()))
show("sort", cupy.asnumpy(cupy.sort(numbers)))
show("argsort", cupy.asnumpy(cupy.argsort(numbers)))
show("where", cupy.asnumpy(cupy.where(numbers > 1)[0]))

square = cupy.RawKernel(
    r"""extern "C" __global__ void square(const float* in, float* out, int count) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < count) out[i] = in[i] * in[i];
        }""", "square")
squares = cupy.empty_like(numbers)
square((4096,), (256,), (numbers, squares, numbers.size))
show("RawKernel", cupy.asnumpy(squares))

module = cupy.RawModule(
    code=r"""__constant__ float factor;
             template <typename T> __global__ void scale(T* values, int count) {
               int i = blockIdx.x * blockDim.x + threadIdx.x;
               if (i < count) values[i] *= factor;
             }""", options=("-std=c++17",), name_expressions=["scale<float>", "scale<double>"])
factor = cupy.ndarray((1,), numpy.float32, module.get_global("factor"))
factor[...] = 3
scale = module.get_function("scale<float>")

stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    kept = numbers.copy()
    stream.synchronize()
    stream.begin_capture()
    for _ in range(10):
        scale((4096,), (256,), (kept, kept.size))
    graph = stream.end_capture()


def replay(name):
    graph.launch(stream)
    stream.synchronize()
    show(name, cupy.asnumpy(kept))


replay("graph")
pause_point()
scale((4096,), (256,), (squares, squares.size))
show("RawModule", cupy.asnumpy(squares))
with stream:
    cupy.copyto(kept, squares)
replay("graph, other values")

pool = cupy.cuda.MemoryAsyncPool()
cupy.cuda.set_allocator(pool.malloc)
with stream:
    parts = [cupy.full((1 << 16,), i, dtype=numpy.int32) for i in range(8)]
    joined = cupy.concatenate(parts)
    del parts
stream.synchronize()
show("asynchronous pool", cupy.asnumpy(joined))
