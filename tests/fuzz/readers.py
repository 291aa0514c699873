"""What reads bytes that a program did not write: a small valid input for each, and how it is read."""

from __future__ import annotations

import glob
import io
import os
import random
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

import tapeflow as tf

IMAGE = tf.constant(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))


def _example() -> bytes:
    floats = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
    words = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"ab"]))
    features = tf.train.Features(feature={"x": floats, "s": words})
    return tf.train.Example(features=features).SerializeToString()


def _from_pillow(kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(IMAGE.numpy()).save(file, kind)
    return file.getvalue()


def _with_file(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    def run(data: bytes) -> Any:
        path = os.path.join(tempfile.gettempdir(), f"tapeflow-fuzz-{os.getpid()}")
        with open(path, "wb") as file:
            file.write(data)
        try:
            return read(path)
        finally:
            os.remove(path)

    return run


def _records() -> bytes:
    path = os.path.join(tempfile.gettempdir(), f"tapeflow-fuzz-records-{os.getpid()}")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"first")
        writer.write(b"second" * 10)
    with open(path, "rb") as file:
        data = file.read()
    os.remove(path)
    return data


def _checkpoint(part: str) -> tuple[bytes, Callable[[bytes], Any]]:
    """One file of a checkpoint, and a restore with other bytes in its place."""
    folder = tempfile.mkdtemp()
    before = {"v": tf.Variable([1.0, 2.0]), "n": tf.Variable(3)}
    prefix = tf.train.Checkpoint(**before).write(os.path.join(folder, "ckpt"))
    path = next(os.path.join(folder, name) for name in sorted(os.listdir(folder)) if part in name)
    with open(path, "rb") as file:
        data = file.read()

    def restore(changed: bytes) -> Any:
        with open(path, "wb") as file:
            file.write(changed)
        return tf.train.Checkpoint(v=tf.Variable([0.0, 0.0]), n=tf.Variable(0)).read(prefix)

    return data, restore


def _saved_model() -> tuple[bytes, Callable[[bytes], Any]]:
    """The file of a SavedModel, and a model that is loaded and called with other bytes in its place."""
    folder = tempfile.mkdtemp()
    module = tf.Module()
    module.v = tf.Variable([1.0, 2.0])
    words = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1], tf.int64))
    module.table = tf.lookup.StaticHashTable(words, -1)

    def loop(x: Any) -> Any:
        total = tf.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, tf.sin(t) * module.v), (0, x))[1]
        return tf.cond(tf.reduce_sum(total) > 0.0, lambda: total, lambda: -total)

    module.f = tf.function(loop, input_signature=[tf.TensorSpec([2])])
    module.g = tf.function(module.table.lookup, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, folder)
    path = os.path.join(folder, "saved_model.pb")
    with open(path, "rb") as file:
        data = file.read()

    def load(changed: bytes) -> Any:
        with open(path, "wb") as file:
            file.write(changed)
        loaded = tf.saved_model.load(folder)
        for name, x in (("f", tf.constant([1.0, 2.0])), ("g", tf.constant(["a"]))):
            if hasattr(loaded, name):  # the change may be one of the name
                getattr(loaded, name)(x)
        return loaded

    return data, load


def _saved_dataset() -> tuple[bytes, Callable[[bytes], Any]]:
    """The records of a saved dataset, and a dataset that is loaded with other bytes in their place."""
    folder = tempfile.mkdtemp()
    tf.data.Dataset.from_tensor_slices({"a": [1.0, 2.0], "s": ["x", "yy"]}).save(folder)
    (path,) = glob.glob(os.path.join(folder, "*", "*.shard", "*.snapshot"))
    with open(path, "rb") as file:
        data = file.read()

    def load(changed: bytes) -> Any:
        with open(path, "wb") as file:
            file.write(changed)
        return list(tf.data.Dataset.load(folder))

    return data, load


def _graph() -> bytes:
    with tf.Graph().as_default() as graph:
        tf.identity(tf.compat.v1.placeholder(tf.float32, [2]) * 2.0 + 1.0, name="y")
    return graph.as_graph_def().SerializeToString()


def _import(data: bytes) -> Any:
    with tf.Graph().as_default():
        return tf.import_graph_def(tf.compat.v1.GraphDef.FromString(data))


def readers() -> dict[str, tuple[bytes, Callable[[bytes], Any]]]:
    """Valid bytes and the reader of them, by the name of the reader."""
    sound = tf.constant(np.linspace(-1, 1, 8, dtype=np.float32).reshape(-1, 1))
    parse = lambda data: tf.io.parse_single_example(  # noqa: E731
        data, {"x": tf.io.FixedLenFeature([2], tf.float32), "s": tf.io.VarLenFeature(tf.string)}
    )
    lines = lambda path: [x.numpy() for x in tf.data.TFRecordDataset(path)]  # noqa: E731
    return {
        "decode_png": (tf.io.encode_png(IMAGE).numpy(), tf.io.decode_png),
        "decode_jpeg": (tf.io.encode_jpeg(IMAGE).numpy(), tf.io.decode_jpeg),
        "decode_image": (tf.io.encode_png(IMAGE).numpy(), tf.io.decode_image),
        "decode_gif": (_from_pillow("GIF"), tf.io.decode_gif),
        "decode_bmp": (_from_pillow("BMP"), tf.io.decode_bmp),
        "decode_wav": (tf.audio.encode_wav(sound, 8000).numpy(), tf.audio.decode_wav),
        "parse_tensor": (tf.io.serialize_tensor(IMAGE).numpy(), lambda data: tf.io.parse_tensor(data, tf.uint8)),
        "parse_example": (_example(), parse),
        "decode_csv": (b'1,"a b",2.5', lambda data: tf.io.decode_csv(data, [0, "", 0.0])),
        "decode_raw": (b"\0" * 16, lambda data: tf.io.decode_raw(data, tf.float32)),
        "decode_base64": (b"aGVsbG8_", tf.io.decode_base64),
        "decode_compressed": (b"\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15",
                              lambda data: tf.io.decode_compressed(data, "ZLIB")),
        "decode_json_example": (b'{"features": {"feature": {"x": {"floatList": {"value": [1.0]}}}}}',
                                tf.io.decode_json_example),
        "TFRecordDataset": (_records(), _with_file(lines)),
        "checkpoint index": _checkpoint("index"),
        "checkpoint data": _checkpoint("data"),
        "import_graph_def": (_graph(), _import),
        "saved_model": _saved_model(),
        "saved dataset": _saved_dataset(),
    }  # fmt: skip


def mutated_bytes(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a few changes."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        place = chance.randrange(len(changed) + 1)
        what = chance.randrange(6)
        if what == 0 and place < len(changed):
            changed[place] ^= 1 << chance.randrange(8)
        elif what == 1 and place < len(changed):
            changed[place] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif what == 2:
            del changed[place : place + chance.randrange(1, 9)]
        elif what == 3:
            changed[place:place] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        elif what == 4:
            del changed[place:]
        else:
            changed[place : place + 4] = chance.choice([b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"])
    return bytes(changed)
