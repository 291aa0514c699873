"""Writes the SavedModels of this folder with TensorFlow 2.21, each as a zip file with the values it must give.

.peers/bin/python tests/compat/saved_model/tensorflow_files/make.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

FOLDER = Path(__file__).parent


class Parts(tf.Module):
    """Functions with loops, branches, tables, lists, structures, assets and effects."""

    def __init__(self, vocabulary: str):
        super().__init__()
        self.v = tf.Variable([1.0, 2.0], name="v")
        self.step = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.parts = [tf.Variable(3.0), {"a": tf.Variable(4.0)}]
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2], tf.string, tf.int64)
        self.table = tf.lookup.StaticHashTable(pairs, -1)
        line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        lines = tf.lookup.TextFileInitializer(vocabulary, tf.string, line, tf.int64, number)
        self.vocabulary = tf.lookup.StaticVocabularyTable(lines, 2)
        self.asset = tf.saved_model.Asset(vocabulary)
        self.changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
        self.changing.insert(["k"], [5.0])
        self.constant = tf.constant([10.0, 20.0])

    @tf.function
    def loop(self, x, n):
        for _ in tf.range(n):
            x = tf.sin(x) * self.v
        return x

    @tf.function
    def branch(self, x):
        if tf.reduce_sum(x) > 0:
            return x * self.v
        else:
            return -x

    @tf.function
    def case(self, i, x):
        return tf.switch_case(i, [lambda: x, lambda: x * x, lambda: x * x * self.v])

    @tf.function
    def lists(self, x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(3):
            array = array.write(i, x * tf.cast(i, tf.float32) * self.v)
        return array.stack()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, keys):
        return self.table.lookup(keys), self.vocabulary.lookup(keys), self.changing.lookup(keys)

    @tf.function
    def captured(self, x):
        return x + self.constant

    @tf.function
    def structured(self, d, flag=True, scale=2.0):
        y = d["a"] * scale if flag else d["b"]
        return {"y": y, "z": (y, [y + 1])}

    @tf.function
    def bump(self):
        self.step.assign_add(1)

    @tf.function
    def rows(self, ragged):
        return tf.reduce_sum(ragged, axis=1)

    @tf.function
    def read(self):
        return tf.io.read_file(self.asset.asset_path)

    @tf.function
    def custom(self, x):
        @tf.custom_gradient
        def square(x):
            return x * x, lambda dy: dy * 100.0 * x

        return square(x)

    @tf.function
    def nested(self, x):
        return self.branch(self.loop(x, tf.constant(2)))

    @tf.function
    def mapped(self, x):
        return tf.map_fn(lambda row: tf.reduce_sum(row * self.v), x)

    @tf.function
    def gradient(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(self.loop(x, tf.constant(2)))
        return tape.gradient(y, x)


def zipped(folder: Path, name: str, expected: dict[str, np.ndarray]) -> None:
    """One zip file of a model and its values."""
    np.savez(folder / "expected.npz", **expected)
    with zipfile.ZipFile(FOLDER / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                file.writestr(zipfile.ZipInfo(str(path.relative_to(folder))), path.read_bytes(), zipfile.ZIP_DEFLATED)


def make_parts(folder: Path) -> None:
    """The module."""
    words = folder.parent / "words.txt"
    words.write_text("x\ny\nz\n")
    module, x = Parts(str(words)), tf.constant([0.5, -0.3])
    module.loop(x, tf.constant(3))
    module.branch(x)
    module.case(tf.constant(1), x)
    module.lists(x)
    module.captured(x)
    for arguments in ({}, {"flag": False}, {"scale": 3.0}):
        module.structured({"a": x, "b": x}, **arguments)
    module.bump()
    module.rows(tf.ragged.constant([[1.0, 2.0], [3.0]]))
    module.read()
    module.custom(x)
    module.nested(x)
    module.mapped(tf.ones([3, 2]))
    module.gradient(x)
    module.frozen = module.loop.get_concrete_function(tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int32))
    gradient = module.gradient.get_concrete_function(tf.TensorSpec([2]))
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.look, "gradient": gradient})
    expected = {"x": x.numpy()}
    calls = {
        "loop": lambda x: module.loop(x, tf.constant(3)),
        "branch": module.branch,
        "case": lambda x: module.case(tf.constant(2), x),
        "lists": module.lists,
        "nested": module.nested,
        "custom": module.custom,
        "gradient": module.gradient,
    }
    for name, call in calls.items():
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = call(x)
                total = tf.reduce_sum(y)
            dx, dv = tape.gradient(total, [x, module.v], unconnected_gradients="zero")
            first = tf.reduce_sum(dx)
        second = outer.gradient(first, x, unconnected_gradients="zero")
        expected |= {name: y.numpy(), f"{name}_dx": dx.numpy(), f"{name}_dv": dv.numpy(), f"{name}_dxx": second.numpy()}
    zipped(folder, "parts", expected)


def make_v1(folder: Path) -> None:
    """A model of TensorFlow 1, with variables of its own kind."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        w = v1.get_variable("w", initializer=[[1.0], [2.0]], use_resource=False)
        b = v1.get_variable("b", initializer=[0.5], use_resource=True, trainable=False)
        y = tf.nn.relu(tf.matmul(x, w) + b, name="y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
        given = np.array([[1.0, 2.0], [-3.0, 0.0]], np.float32)
        zipped(folder, "v1", {"x": given, "y": session.run(y, {x: given})})


def make_models() -> dict[str, tuple[keras.Model, np.ndarray]]:
    """Keras models with an input each."""
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype("float32")

    ids = keras.Input([None], dtype="int32")
    x = layers.Embedding(12, 8)(ids)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    transformer = keras.Model(ids, layers.Dense(12)(x + layers.Dense(8)(layers.Dense(16, "gelu")(x))))
    words = layers.TextVectorization(max_tokens=20, output_sequence_length=6)
    words.adapt(["the cat sat", "a dog ran fast", "the end"])
    text = keras.Input([], dtype="string")
    vector = layers.GlobalAveragePooling1D()(layers.Embedding(20, 4)(words(text)))
    normalization = layers.Normalization()
    normalization.adapt(normal(50, 4))
    mlp = [layers.Dense(6, "relu"), layers.BatchNormalization(), layers.Dropout(0.2), layers.Dense(3, "softmax")]
    cnn = [layers.Conv2D(4, 3, padding="same", activation="relu"), layers.MaxPooling2D(), layers.DepthwiseConv2D(3)]
    cnn += [layers.Conv2DTranspose(2, 3, strides=2), layers.GlobalAveragePooling2D(), layers.Dense(2)]
    lstm = [layers.Embedding(9, 3, mask_zero=True), layers.Bidirectional(layers.LSTM(2, return_sequences=True))]
    lstm += [layers.GRU(3), layers.Dense(2)]
    return {
        "mlp": (keras.Sequential([keras.Input([4]), normalization, *mlp]), normal(3, 4)),
        "cnn": (keras.Sequential([keras.Input([8, 8, 3]), *cnn]), normal(2, 8, 8, 3)),
        "recurrent": (keras.Sequential([keras.Input([None], dtype="int32"), *lstm]), random.integers(0, 9, [3, 5])),
        "transformer": (transformer, random.integers(0, 12, [2, 6])),
        "text": (keras.Model(text, layers.Dense(2)(vector)), np.array([b"the cat ran", b"a unknown word"])),
    }


def make_keras(folder: Path, name: str, model: keras.Model, x: np.ndarray) -> None:
    """An exported model, its output and the gradients of the sum of its squares."""
    model.export(str(folder), verbose=False)
    loaded = tf.saved_model.load(str(folder))
    x = tf.constant(x.astype("int32") if x.dtype.kind == "i" else x)
    with tf.GradientTape() as tape:
        y = loaded.serve(x)
        loss = tf.reduce_sum(y * y)
    gradients = tape.gradient(loss, list(loaded.trainable_variables))
    arrays = {f"gradient_{i}": tf.convert_to_tensor(g).numpy() for i, g in enumerate(gradients)}
    zipped(folder, name, {"x": x.numpy().astype("S") if x.dtype == tf.string else x.numpy(), "y": y.numpy(), **arrays})


def main() -> None:
    """Writes all of them, or those that are named."""
    keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as where:
        models = make_models()
        for name in sys.argv[1:] or ["parts", "v1", *models]:
            folder = Path(where) / name
            if name in ("parts", "v1"):
                {"parts": make_parts, "v1": make_v1}[name](folder)
            else:
                make_keras(folder, name, *models[name])
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
