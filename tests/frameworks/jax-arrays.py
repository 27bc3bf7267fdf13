"""JAX: compiled functions, gradients, a scan, random numbers, matrix products, convolutions, cuSOLVER by its own calls."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# By default a matrix product uses the algorithm that was fastest in this run, so results differ between runs.
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true")
import jax
import jax.numpy as jnp
import numpy

from program import pause_point, show, since_start, timed

assert jax.devices()[0].platform == "gpu", f"JAX has {jax.devices()}"
matrix = jnp.asarray(numpy.random.default_rng(1).random((64, 64), dtype=numpy.float32))
matrix.block_until_ready()
timed("import and first array", since_start())


@jax.jit
def layers(weights, inputs):
    return jnp.tanh(jnp.tanh(inputs @ weights) @ weights.T).sum()


def round_of(name):
    show(f"{name} elementwise", numpy.asarray(jnp.sin(matrix) * 2 + matrix.sum()))
    show(f"{name} gradient", numpy.asarray(jax.grad(layers)(matrix, matrix)))
    show(f"{name} scan", numpy.asarray(jax.lax.scan(lambda sum, row: (sum + row, sum * row), matrix[0], matrix)[1]))
    show(f"{name} random", numpy.asarray(jax.random.normal(jax.random.PRNGKey(7), (1000,))))
    show(f"{name} sort", numpy.asarray(jnp.sort(matrix, axis=1)))
    show(f"{name} convolution", numpy.asarray(jax.lax.conv(matrix.reshape(1, 4, 32, 32), matrix[:4, :36].reshape(4, 4, 3, 3), (1, 1), "SAME")))
    show(f"{name} eigenvalues", numpy.asarray(jnp.linalg.eigvalsh(matrix @ matrix.T)))


round_of("first")
pause_point()
round_of("second")
