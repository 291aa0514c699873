"""`tf.test`: a test case for programs with tensors, and what a program may ask about the machine."""

from tapeflow.namespace import public_later
from tapeflow.testing import machine

public_later("tapeflow.testing.test_case", "test.TestCase", "test.main")
public_later("tapeflow.testing.graph_checks", "test.assert_equal_graph_def", "test.Benchmark")
public_later(
    "tapeflow.testing.graph_checks",
    *(f"compat.v1.test.{name}" for name in ("compute_gradient", "compute_gradient_error")),
    *(f"compat.v1.test.{name}" for name in ("assert_equal_graph_def", "get_temp_dir")),
)
