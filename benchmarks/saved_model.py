"""Loading a SavedModel (ResNet50, exported by TensorFlow), and parsing examples: against TensorFlow, in one run.

python benchmarks/saved_model.py
"""

import os
import tempfile

from compare import frameworks, print_table, run

EXPORT = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
model = keras.applications.ResNet50(weights=None, classes=10, input_shape=(64, 64, 3))
model.export({folder!r}, verbose=False)
print(0.0)
"""
LOAD = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import {name} as tf
tf.constant(1.0) + 1.0
start = time.perf_counter()
model = tf.saved_model.load({folder!r})
if {call}:
    model.serve(tf.zeros([1, 64, 64, 3]))
print(time.perf_counter() - start)
"""
PARSE = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import {name} as tf
floats = tf.train.Feature(float_list=tf.train.FloatList(value=[float(i) for i in range(100)]))
label = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"some words"]))
features = tf.train.Features(feature=dict(x=floats, y=label, z=text))
data = tf.constant([tf.train.Example(features=features).SerializeToString()] * 256)
spec = dict(
    x=tf.io.FixedLenFeature([100], tf.float32), y=tf.io.FixedLenFeature([], tf.int64), z=tf.io.VarLenFeature(tf.string)
)
times = []
for _ in range(20):
    start = time.perf_counter()
    tf.io.parse_example(data, spec)
    times.append(time.perf_counter() - start)
print(min(times))
"""


def main():
    names = [name for name in frameworks() if name in ("tapeflow", "tensorflow")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "resnet50")
        run("tensorflow", "-c", EXPORT.format(folder=path))
        for what, call in (("load ResNet50", False), ("load and call ResNet50", True)):
            rows.append(_row(what, [LOAD.format(name=n, folder=path, call=call) for n in names], names, 2))
    rows.append(_row("parse 256 examples", [PARSE.format(name=n) for n in names], names, 2))
    print_table("SavedModels and examples, best of several runs.", ["what", *names, "ratio"], rows)


def _row(what, programs, names, repeat):
    seconds = [min(run(name, "-c", program) for _ in range(repeat)) for name, program in zip(names, programs)]
    ratio = f"{seconds[0] / seconds[1]:.2f}" if len(seconds) == 2 else ""
    return [what, *(f"{s * 1e3:,.1f} ms" for s in seconds), ratio]


if __name__ == "__main__":
    main()
