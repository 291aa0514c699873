"""Matrix products of the shapes that take different ways through the kernels."""

import numpy as np
import pytest

import tapeflow as tf

SHAPES = [
    (1, 40, 70),
    (3, 17, 300),
    (16, 128, 512),
    (20, 100, 400),
    (32, 64, 256),
    (33, 65, 257),
    (130, 70, 300),
    (300, 40, 270),
    (512, 128, 300),
    (128, 512, 300),
    (600, 520, 64),
    (1024, 70, 50),
    (2048, 33, 300),
]


@pytest.fixture
def threads():
    yield tf.config.threading.set_intra_op_parallelism_threads
    tf.config.threading.set_intra_op_parallelism_threads(0)


def matrices(m, n, k, transpose_a, transpose_b, dtype):
    generator = np.random.default_rng(m + n + k)
    a = generator.standard_normal((k, m) if transpose_a else (m, k)).astype(dtype)
    b = generator.standard_normal((n, k) if transpose_b else (k, n)).astype(dtype)
    return a, b


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
def test_products_are_right_on_any_number_of_threads(transpose_a, transpose_b, dtype, threads):
    for m, n, k in SHAPES:
        a, b = matrices(m, n, k, transpose_a, transpose_b, dtype)
        seen = []
        for count in (1, 2, 5):
            threads(count)
            seen.append(tf.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b).numpy())
        exact = (a.T if transpose_a else a).astype(np.float64) @ (b.T if transpose_b else b).astype(np.float64)
        tolerance = {"float32": 2e-4, "float64": 1e-11, "int32": 0}[dtype]
        np.testing.assert_allclose(seen[0], exact, rtol=0, atol=tolerance, err_msg=f"{m} x {n} x {k}")
        for other in seen[1:]:
            np.testing.assert_array_equal(seen[0], other, err_msg=f"{m} x {n} x {k}")


@pytest.mark.parametrize("transpose_b", [False, True])
def test_batches_of_products(transpose_b, threads):
    for count in (1, 2, 5):
        threads(count)
        for batch, m, n, k in [(32, 64, 64, 32), (7, 40, 20, 30), (3, 200, 100, 50)]:
            pairs = [matrices(m, n, k, False, transpose_b, "float32") for _ in range(batch)]
            a, b = (np.stack(list(side)) * np.arange(1, batch + 1, dtype="f")[:, None, None] for side in zip(*pairs))
            exact = np.matmul(a, b.swapaxes(1, 2) if transpose_b else b)
            np.testing.assert_allclose(tf.matmul(a, b, transpose_b=transpose_b), exact, rtol=1e-4, atol=1e-2)
