"""Random numbers in the children of a fork."""

import subprocess
import sys

PROGRAM = """
import os, tapeflow as tf
f = tf.function(lambda: tf.random.uniform([2]))
tf.random.uniform([1])
f()
for _ in range(2):
    if os.fork() == 0:
        print(*tf.random.uniform([2]).numpy(), *f().numpy(), flush=True)
        os._exit(0)
    os.wait()
print(*tf.random.uniform([2]).numpy(), *f().numpy())
"""


def test_forked_children_draw_numbers_of_their_own():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    numbers = result.stdout.split()
    assert len(numbers) == len(set(numbers)) == 12, result.stderr
