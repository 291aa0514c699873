"""What a checkpoint holds, without a program that matches it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.state import latest_checkpoint, read_latest
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle
from tapeflow._src.types.dtypes import DType
from tapeflow._src.types.errors import DataLossError


class CheckpointReader:
    """The values of a checkpoint, by name."""

    def __init__(self, path: str) -> None:
        self._bundle = Bundle(path)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shape of each value."""
        return {name: self._bundle.shape(name) for name in self._bundle.names}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtype of each value."""
        return {name: self._bundle.dtype(name) for name in self._bundle.names}

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a value with this name."""
        return tensor_str in self._bundle

    def get_tensor(self, tensor_str: str) -> Any:
        """A value."""
        return self._bundle.value(tensor_str)

    def debug_string(self) -> bytes:
        """A line for each value: its name, dtype and shape."""
        kinds = messages.enum_type("DataType")
        shapes = self.get_variable_to_shape_map()
        lines = [
            f"{name} ({kinds.Name(dtype.as_datatype_enum)}) [{','.join(map(str, shapes[name]))}]\n"
            for name, dtype in sorted(self.get_variable_to_dtype_map().items())
        ]
        return "".join(lines).encode()


@public("compat.v1.train.NewCheckpointReader")
def new_checkpoint_reader(filepattern: Any) -> CheckpointReader:
    """A reader of the checkpoint whose files begin with this path.

    >>> path = tf.train.Checkpoint(v=tf.Variable([1., 2.])).write("model")
    >>> tf.compat.v1.train.NewCheckpointReader(path).has_tensor("v/.ATTRIBUTES/VARIABLE_VALUE")
    True
    """
    path = os.fspath(filepattern)
    if os.path.isdir(path) and not os.path.exists(f"{path}.index"):
        raise DataLossError.of(
            f"Unable to open table file {path}: FAILED_PRECONDITION: {path}; Is a directory: perhaps your file is in "
            "a different file format and you need to use a different restore operator?"
        )
    return CheckpointReader(path)


@public("train.load_checkpoint", "compat.v1.train.load_checkpoint")
def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """A reader of a checkpoint: of the last one, if a folder is given.

    >>> path = tf.train.Checkpoint(v=tf.Variable([1., 2.])).write("model")
    >>> tf.train.load_checkpoint(path).get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE")
    array([1., 2.], dtype=float32)
    """
    path = os.fspath(ckpt_dir_or_file)
    if not os.path.isdir(path):
        return CheckpointReader(path)
    found = read_latest(path, CheckpointReader)
    if found is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
    return found


@public("train.list_variables", "compat.v1.train.list_variables")
def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """The names and shapes of the values in a checkpoint.

    >>> path = tf.train.Checkpoint(v=tf.Variable([1., 2.])).write("model")
    >>> tf.train.list_variables(path)
    [('_CHECKPOINTABLE_OBJECT_GRAPH', []), ('v/.ATTRIBUTES/VARIABLE_VALUE', [2])]
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


@public("train.load_variable", "compat.v1.train.load_variable")
def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """One value of a checkpoint.

    >>> path = tf.train.Checkpoint(v=tf.Variable([1., 2.])).write("model")
    >>> tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE")
    array([1., 2.], dtype=float32)
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


@public("train.checkpoints_iterator", "compat.v1.train.checkpoints_iterator")
def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The checkpoints of a folder as they come; ends when none has come for `timeout` seconds.

    >>> list(tf.train.checkpoints_iterator("/no/such/folder", timeout=0))
    []
    """
    last = None
    while True:
        begin = time.time()
        path = latest_checkpoint(checkpoint_dir)
        while path is None or path == last:
            if timeout is not None and time.time() - begin >= timeout:
                if timeout_fn is None or timeout_fn():
                    return
                begin = time.time()
            time.sleep(min(1.0, timeout or 1.0))
            path = latest_checkpoint(checkpoint_dir)
        last = path
        yield path
        time.sleep(max(0.0, begin + min_interval_secs - time.time()))
