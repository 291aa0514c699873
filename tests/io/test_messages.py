"""Messages with protobuf's compiled part and without it, as on Pythons for which it has none."""

import os
import subprocess
import sys

PROGRAM = """
import sys
from google.protobuf.internal import api_implementation
import tapeflow as tf
assert api_implementation.Type() == "python"
print([dim.size for dim in tf.TensorShape([2, None]).as_proto().dim])
module = tf.Module()
module.f = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([None])])
tf.saved_model.save(module, sys.argv[1])
print(tf.saved_model.load(sys.argv[1]).f(tf.constant([3.0])).numpy())
with open(sys.argv[1] + "/saved_model.pb", "wb") as file:
    file.write(b"\\x12\\x05\\x0a\\x03\\x0a\\x01\\xb1")  # text that is no UTF-8
try:
    tf.saved_model.load(sys.argv[1])
except tf.errors.DataLossError:
    print("refused")
"""


def test_without_the_compiled_part_of_protobuf(tmp_path):
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.stdout.splitlines() == ["[2, -1]", "[6.]", "refused"], run.stderr
