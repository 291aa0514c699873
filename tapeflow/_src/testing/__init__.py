"""`tf.test`: a test case for programs with tensors, and what a program may ask about the machine."""

from tapeflow._src.namespace import public_later
from tapeflow._src.testing import machine

public_later("tapeflow._src.testing.test_case", "test.TestCase", "test.main")
public_later("tapeflow._src.testing.graph_checks", "test.assert_equal_graph_def", "test.Benchmark")
public_later(
    "tapeflow._src.testing.graph_checks",
    *(f"compat.v1.test.{name}" for name in ("compute_gradient", "compute_gradient_error")),
    *(f"compat.v1.test.{name}" for name in ("assert_equal_graph_def", "get_temp_dir", "mock")),
)
