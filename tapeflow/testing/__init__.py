"""`tf.test`: a test case for programs with tensors, and what a program may ask about the machine."""

from tapeflow.namespace import public_later
from tapeflow.testing import machine

public_later("tapeflow.testing.test_case", "test.TestCase", "test.main")
