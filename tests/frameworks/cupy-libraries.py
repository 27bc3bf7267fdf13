"""CuPy: libraries that run in the program with their own runtime, which is redirected: cuRAND, cuSOLVER, cuSPARSE. A generator's
sequence continues after the pause."""
import cupy
import numpy
from cupyx.scipy import sparse

from program import pause_point, show

matrix = cupy.asarray(numpy.random.default_rng(1).random((64, 64)))
whole = cupy.asarray(numpy.random.default_rng(2).integers(-4, 5, (64, 64)).astype(numpy.float64))  # sums are exact in any order
of_rows = sparse.csr_matrix(whole * (whole > 2))
cupy.random.seed(3)
generator = cupy.random.default_rng(4)


def round_of(name):
    show(f"{name} uniform", cupy.random.random(1000).get())
    show(f"{name} normal", cupy.random.normal(size=1000).get())
    show(f"{name} generator", generator.random(1000).get())
    show(f"{name} solve", cupy.linalg.solve(matrix, matrix[:, 0]).get())
    show(f"{name} singular values", cupy.linalg.svd(matrix)[1].get())
    show(f"{name} triangle", cupy.linalg.qr(matrix)[1].get())
    show(f"{name} sparse product", (of_rows @ whole).get())
    show(f"{name} transposed product", (of_rows.T.tocsr() @ whole).get())


round_of("first")
pause_point()
round_of("second")
