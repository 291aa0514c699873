"""Writing over files: wherever it is interrupted, the old content or the new one is there, never parts of both."""

import os
from pathlib import Path

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.io.atomic_files import AtomicFiles


class Interrupted(BaseException):
    """In place of the end of the process."""


def write_checkpoint(folder, number):
    variables = [tf.Variable(np.full(300, float(number))) for _ in range(3)]
    tf.train.Checkpoint(variables=variables).write(str(folder / "checkpoint"))


def read_checkpoint(folder):
    reader = tf.train.load_checkpoint(str(folder / "checkpoint"))
    keys = [key for key in reader.get_variable_to_shape_map() if key.startswith("variables/")]
    return {x for key in keys for x in reader.get_tensor(key).tolist()}


def write_model(folder, number):
    module = tf.Module()
    module.variables_ = [tf.Variable(np.full(300, float(number))) for _ in range(3)]
    module.f = tf.function(lambda: module.variables_[0][0], input_signature=[])
    tf.saved_model.save(module, folder / "model")


def read_model(folder):
    model = tf.saved_model.load(folder / "model")
    return {x for variable in model.variables_ for x in variable.numpy().tolist()}


def write_text(folder, number):
    tf.io.write_file(str(folder / "text"), f"{number}" * 100)


def read_text(folder):
    return set(map(float, tf.io.read_file(str(folder / "text")).numpy().decode()))


KINDS = {
    "checkpoint": (write_checkpoint, read_checkpoint),
    "model": (write_model, read_model),
    "text": (write_text, read_text),
}


@pytest.mark.parametrize("name", KINDS)
def test_an_interrupted_writer_leaves_the_old_or_the_new(name, tmp_path, monkeypatch):
    write, read = KINDS[name]
    write(tmp_path, 1)
    replace, calls, found = os.replace, [], []

    def count(source, target):
        if len(calls) == place:
            raise Interrupted
        calls.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", count)
    for place in range(10):
        calls.clear()
        try:
            write(tmp_path, place + 2)
        except Interrupted:
            found.append(read(tmp_path))
            continue
        break
    assert read(tmp_path) == {place + 2.0}
    assert found and all(len(values) == 1 for values in found)
    assert not [path for path in tmp_path.rglob("*") if ".tmp" in path.name]


def test_data_takes_no_name_that_the_old_index_refers_to(tmp_path):
    for number, shards in ((1, 1), (2, 2), (3, 1)):
        write_checkpoint(tmp_path, number)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"checkpoint.index", f"checkpoint.data-00000-of-{shards:05d}"}
        assert read_checkpoint(tmp_path) == {float(number)}


def test_links_and_pipes_stay_what_they_are(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    tf.io.write_file(str(link), "new")
    assert link.is_symlink() and target.read_text() == "new"
    tf.io.write_file(os.devnull, "new")
    assert not Path(os.devnull).is_file()


def test_an_error_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError), AtomicFiles() as files:
        files.write(str(tmp_path / "a"), b"a")
        with files.open(str(tmp_path / "b")):
            1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []
