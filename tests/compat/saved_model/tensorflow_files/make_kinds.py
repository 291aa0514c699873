"""Writes `kinds.zip`, `inner.zip`, `frames.zip` and `partitioned.zip` with TensorFlow 2.21: operations of many kinds,
gradients inside of functions, loops of TensorFlow 1, and partitioned variables.

.peers/bin/python tests/compat/saved_model/tensorflow_files/make_kinds.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from make import zipped

v1 = tf.compat.v1


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def example() -> bytes:
    feature, lists = tf.train.Feature, tf.train
    parts = {
        "a": feature(float_list=lists.FloatList(value=[1.0, 2.0])),
        "b": feature(bytes_list=lists.BytesList(value=[b"x", b"y"])),
        "c": feature(int64_list=lists.Int64List(value=[1, -2, 300])),
    }
    return tf.train.Example(features=tf.train.Features(feature=parts)).SerializeToString()


FEATURES = {
    "a": tf.io.FixedLenFeature([2], tf.float32),
    "b": tf.io.VarLenFeature(tf.string),
    "c": tf.io.RaggedFeature(tf.int64),
    "d": tf.io.FixedLenFeature([], tf.string, default_value="none"),
}
TEXT, LOGITS, NUMBERS = tf.TensorSpec([None], tf.string), tf.TensorSpec([5, 1, 4]), tf.TensorSpec([None, 3])


class Kinds(tf.Module):
    """One function for each kind of operation."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = tf.random.Generator.from_seed(3)
        self.v = tf.Variable(numbers(4, 2))

    @tf.function(input_signature=[TEXT])
    def examples(self, data):
        return tf.io.parse_example(data, FEATURES)

    @tf.function(input_signature=[TEXT])
    def points(self, text):
        return tf.strings.unicode_decode(text, "UTF-8").to_tensor(-1)

    @tf.function(input_signature=[TEXT])
    def grams(self, text):
        return tf.strings.ngrams(tf.strings.split(text), 2).to_tensor("")

    @tf.function(input_signature=[LOGITS])
    def sparse_ctc(self, logits):
        return tf.nn.ctc_loss(tf.sparse.from_dense([[1, 2, 2]]), logits, None, [5], blank_index=-1)

    @tf.function(input_signature=[LOGITS])
    def dense_ctc(self, logits):
        return tf.nn.ctc_loss(tf.constant([[1, 2, 2]]), logits, [3], [5], blank_index=0)

    @tf.function(input_signature=[LOGITS])
    def decoded(self, logits):
        return tf.sparse.to_dense(tf.nn.ctc_greedy_decoder(logits, [5])[0][0])

    @tf.function(input_signature=[])
    def drawn(self):
        return self.stream.normal([3]), self.stream.uniform([3], 0, 10, tf.int32)

    @tf.function(input_signature=[])
    def sliced(self):
        self.v[0].assign([5.0, 5.0])
        return self.v.read_value()

    @tf.function(input_signature=[NUMBERS])
    def gradient(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.softmax(x)[:, 1:] ** 2) + tf.reduce_sum(tf.gather(x, [0, 0]))
        return tape.gradient(y, x)

    @tf.function(input_signature=[NUMBERS])
    def crossed(self, x):
        words = tf.strings.as_string(tf.cast(x * 10, tf.int32))[:, :2]
        return tf.sparse.to_dense(tf.sparse.cross_hashed([words, words], 100))


class Inner(tf.Module):
    """Gradients of branches and loops inside of functions, datasets, and examples of sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(0.3 * numbers(3, 3))

    @tf.function(input_signature=[NUMBERS])
    def of_branch(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x @ self.w if tf.reduce_sum(x) > 0 else tf.exp(x)
        return tape.gradient(y, [x, self.w], unconnected_gradients="zero")

    @tf.function(input_signature=[NUMBERS])
    def of_loop(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                y = tf.tanh(y @ self.w)
        return tape.gradient(y, [x, self.w])

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def dataset(self, x):
        total = 0.0
        for place, rows in tf.data.Dataset.from_tensor_slices(x).map(lambda y: y * self.w[0, 0]).batch(2).enumerate():
            total += tf.reduce_sum(rows) * tf.cast(place + 1, tf.float32)
            if total > 100.0:
                break
        pairs = tf.data.Dataset.zip((tf.data.Dataset.range(6), tf.data.Dataset.range(1, 9)))
        pairs = pairs.filter(lambda a, b: a % 2 == 0).repeat(2).skip(1).take(4)
        count = pairs.reduce(tf.constant(0, tf.int64), lambda found, pair: found * 3 + pair[0] * pair[1])
        steps = iter(tf.data.Dataset.range(3).flat_map(lambda k: tf.data.Dataset.from_tensors(k + 5)))
        return total, count, next(steps), next(steps)

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def sequence(self, data):
        lists = {"f": tf.io.FixedLenSequenceFeature([2], tf.float32), "v": tf.io.VarLenFeature(tf.string)}
        return tf.io.parse_single_sequence_example(data, {"k": tf.io.FixedLenFeature([], tf.int64)}, lists)


def sequence_example() -> bytes:
    feature, lists = tf.train.Feature, tf.train
    steps = {
        "f": lists.FeatureList(feature=[feature(float_list=lists.FloatList(value=[1.0, 2.0]))] * 3),
        "v": lists.FeatureList(feature=[feature(bytes_list=lists.BytesList(value=[b"q"]))] * 2),
    }
    context = lists.Features(feature={"k": feature(int64_list=lists.Int64List(value=[3]))})
    whole = lists.SequenceExample(context=context, feature_lists=lists.FeatureLists(feature_list=steps))
    return whole.SerializeToString()


INNER_CALLS = {
    "of_branch": [np.abs(numbers(2, 3))],
    "of_loop": [numbers(2, 3)],
    "dataset": [numbers(5)],
    "sequence": [np.array(sequence_example(), object)],
}
CALLS = {
    "examples": [np.array([example()] * 2, object)],
    "points": [np.array(["añb", ""], object)],
    "grams": [np.array(["a b c", "d"], object)],
    "sparse_ctc": [numbers(5, 1, 4)],
    "dense_ctc": [numbers(5, 1, 4)],
    "decoded": [numbers(5, 1, 4)],
    "drawn": [],
    "sliced": [],
    "gradient": [numbers(3, 3)],
    "crossed": [numbers(3, 3)],
}


def kinds(folder: Path) -> dict[str, np.ndarray]:
    return recorded(Kinds(), CALLS, folder)


def inner(folder: Path) -> dict[str, np.ndarray]:
    return recorded(Inner(), INNER_CALLS, folder)


def recorded(module: tf.Module, calls: dict[str, list[np.ndarray]], folder: Path) -> dict[str, np.ndarray]:
    tf.saved_model.save(module, str(folder))
    loaded, found = tf.saved_model.load(str(folder)), {}
    for name, arrays in calls.items():
        tensors = [tf.constant(a.tolist() if a.dtype == object else a) for a in arrays]
        with tf.GradientTape() as tape:
            tape.watch([t for t in tensors if t.dtype.is_floating])
            y = getattr(loaded, name)(*tensors)
        flat = tf.nest.flatten(y, expand_composites=True)
        for number, array in enumerate(arrays):
            found[f"{name}_x{number}"] = np.array(array.tolist()) if array.dtype == object else array
        for number, value in enumerate(flat):
            value = value.numpy()
            found[f"{name}_y{number}"] = np.array(value.tolist()) if value.dtype == object else value
        if name.endswith("ctc"):
            found[f"{name}_dx"] = tape.gradient(y, tensors[0]).numpy()
    return found


def frames(folder: Path) -> dict[str, np.ndarray]:
    """A loop in a loop, a condition in a loop, conditions in each other, and an array that a loop writes."""
    v1.disable_control_flow_v2()
    with tf.Graph().as_default(), v1.Session() as session:
        v1.disable_resource_variables()
        x = v1.placeholder(tf.float32, [None], name="x")
        w = v1.get_variable("w", [], initializer=v1.constant_initializer(0.5))

        def outer(i, y):
            inner = v1.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * w + 1.0), [0, y])[1]
            return i + 1, v1.cond(tf.equal(i % 2, 0), lambda: inner * w, lambda: inner + x)

        nested = v1.while_loop(lambda i, y: i < 3, outer, [0, x])[1]
        chosen = v1.cond(
            tf.reduce_sum(x) > 100,
            lambda: tf.constant(1.0),
            lambda: v1.cond(x[0] > 0, lambda: x[0] * 2, lambda: x[1] * w),
        )
        array = tf.TensorArray(tf.float32, 3)
        step = lambda t, y, a: (t + 1, tf.tanh(y * w) + x, a.write(t, y))  # noqa: E731
        rows = v1.while_loop(lambda t, *_: t < 3, step, [0, x, array])[2].stack()
        outputs = {"nested": nested, "chosen": chosen, "rows": rows}
        session.run(v1.global_variables_initializer())
        given = numbers(2)
        found = {"x": given, **{f"y_{k}": v for k, v in session.run(outputs, {x: given}).items()}}
        v1.saved_model.simple_save(session, str(folder), {"x": x}, outputs)
        totals = [tf.reduce_sum(y) for y in outputs.values()]
        for key, total in zip(outputs, totals):
            found[f"dw_{key}"] = session.run(v1.gradients(total, [w])[0], {x: given})
    return found


def partitioned(folder: Path) -> dict[str, np.ndarray]:
    """Variables in parts along the rows and along the columns."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 130], name="x")
        common = {"initializer": v1.random_uniform_initializer(seed=4)}
        rows = v1.get_variable("rows", [130, 4], partitioner=v1.fixed_size_partitioner(3), **common)
        columns = v1.get_variable("columns", [4, 5], partitioner=v1.fixed_size_partitioner(2, 1), **common)
        y = x @ tf.convert_to_tensor(rows) @ tf.convert_to_tensor(columns)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
        given = numbers(2, 130)
        found, value = session.run([y, tf.convert_to_tensor(rows)], {x: given})
    return {"x": given, "y": found, "rows": value}


def main() -> None:
    makers = {"kinds": kinds, "inner": inner, "frames": frames, "partitioned": partitioned}
    for name, make in makers.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            expected = make(model)
            zipped(model, name, expected)
        print(name, sorted(expected))


if __name__ == "__main__":
    main()
