"""Checkpoints: round trips, what is restored later, what does not match, and files of TensorFlow."""

import copy
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import tapeflow as tf

TENSORFLOW_FILES = Path(__file__).with_name("tensorflow_files")


class Net(tf.Module):
    """The module of which TensorFlow wrote a checkpoint."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([0.0, 0.0])
        self.layers = [tf.Variable(0), {"a": tf.Variable(0.0)}]
        self.t = (tf.Variable(0.0),)
        self._hidden = tf.Variable(0.0)

    def values(self):
        return [*self.w.numpy(), *(v.numpy() for v in (self.layers[0], self.layers[1]["a"], *self.t, self._hidden))]


VALUES = [1.0, 2.0, 3, 4.0, 5.0, 7.0]


def net_checkpoint():
    net, step = Net(), tf.Variable(0, dtype=tf.int64)
    return net, step, tf.train.Checkpoint(net=net, step=step, same=net.w)


def test_files_that_tensorflow_wrote():
    net, step, checkpoint = net_checkpoint()
    checkpoint.restore(str(TENSORFLOW_FILES / "ck-1")).assert_consumed()
    assert net.values() == VALUES and step == 1 and checkpoint.save_counter == 1
    x, optimizer = tf.Variable(0.0), tf.compat.v1.train.AdamOptimizer(0.1)
    tf.train.Checkpoint(x=x, opt=optimizer).restore(str(TENSORFLOW_FILES / "o-1")).assert_consumed()
    found = [x, optimizer.get_slot(x, "m"), optimizer.get_slot(x, "v"), *optimizer.variables()[:2]]
    np.testing.assert_allclose([float(v) for v in found], [1.9, 0.4, 0.016, 0.81, 0.998001], rtol=1e-4)
    assert tf.train.latest_checkpoint(str(TENSORFLOW_FILES)) == str(TENSORFLOW_FILES / "ck-1")


def test_our_files_hold_what_those_of_tensorflow_hold(tmp_path):
    _, _, checkpoint = net_checkpoint()
    checkpoint.restore(str(TENSORFLOW_FILES / "ck-1"))
    checkpoint.save_counter.assign(0)
    ours = tf.train.load_checkpoint(checkpoint.save(str(tmp_path / "ck")))
    theirs = tf.train.load_checkpoint(str(TENSORFLOW_FILES / "ck-1"))
    assert ours.get_variable_to_dtype_map() == theirs.get_variable_to_dtype_map()
    for name in ours.get_variable_to_shape_map():  # the graph of objects among them, byte for byte
        np.testing.assert_array_equal(ours.get_tensor(name), theirs.get_tensor(name))
    assert (tmp_path / "checkpoint").read_text() == (TENSORFLOW_FILES / "checkpoint").read_text()


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3),
        np.array(3),
        np.zeros((0, 3), np.float32),
        np.array([True, False]),
        np.array([b"ab", b"", b"c" * 300], object),
        np.array([1 + 2j], np.complex64),
        np.random.default_rng(0).random(100_003),
    ],
    ids=lambda value: f"{value.dtype}{value.shape}",
)
def test_values_come_back(tmp_path, value):
    v = tf.Variable(value)
    checkpoint = tf.train.Checkpoint(v=v, b=tf.Variable(tf.constant([1.5], tf.bfloat16)))
    path = checkpoint.write(tmp_path / "c")
    v.assign(np.zeros_like(value) if value.dtype != object else np.full_like(value, b"zero"))
    checkpoint.read(path).assert_consumed()
    np.testing.assert_array_equal(v.numpy(), value)


def test_what_comes_later_is_restored_then(tmp_path):
    net, _, checkpoint = net_checkpoint()
    net.w.assign([8.0, 9.0])
    net.layers[0].assign(5)
    path = checkpoint.save(str(tmp_path / "c"))
    late = tf.Module()
    status = tf.train.Checkpoint(net=late).restore(path)
    late.w = tf.Variable([0.0, 0.0])
    late.layers = [tf.Variable(0)]
    late.other = tf.Variable(3.0)
    assert late.w.numpy().tolist() == [8.0, 9.0] and late.layers[0] == 5 and late.other == 3.0
    late.layers.append({"a": tf.Variable(1.0)})
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound"):
        status.assert_existing_objects_matched()
    assert late.layers[1]["a"] == 0.0  # what a list got is found when somebody asks
    status.expect_partial().assert_nontrivial_match()


def test_optimizers_go_on(tmp_path):
    def program():
        x, optimizer = tf.Variable([1.0, 2.0]), tf.compat.v1.train.AdamOptimizer(0.1)
        return x, optimizer, tf.train.Checkpoint(x=x, optimizer=optimizer)

    def step(x, optimizer):
        optimizer.minimize(lambda: tf.reduce_sum(x**4), var_list=[x])

    x, optimizer, checkpoint = program()
    step(x, optimizer)
    path = checkpoint.save(str(tmp_path / "c"))
    step(x, optimizer)
    y, other, again = program()
    again.restore(path).assert_consumed()
    step(y, other)
    np.testing.assert_array_equal(x, y)


def test_what_does_not_match(tmp_path):
    v = tf.Variable(1.0)
    path = tf.train.Checkpoint(v=v, unused=tf.Variable(2.0)).save(str(tmp_path / "c"))
    status = tf.train.Checkpoint(v=tf.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\)\.unused"):
        status.assert_consumed()
    status.assert_existing_objects_matched()
    status = tf.train.Checkpoint(v=v, more=tf.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound to checkpointed values"):
        status.assert_consumed()
    with pytest.raises(AssertionError, match="Nothing except the root object matched"):
        tf.train.Checkpoint(z=tf.Variable(0.0)).read(path).assert_nontrivial_match()
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        tf.train.Checkpoint(v=v).restore(None).assert_consumed()
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files"):
        tf.train.Checkpoint(v=v).restore(str(tmp_path / "none"))


def test_a_restore_that_fails_changes_nothing(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).write(str(tmp_path / "c"))
    a = tf.Variable(5.0)
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(\) .* variable with shape \(2,\)"):
        tf.train.Checkpoint(a=a, b=tf.Variable([1.0, 2.0])).read(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected dtype int32 does not equal original dtype"):
        tf.train.Checkpoint(a=a, b=tf.Variable(1)).read(path)
    assert a == 5.0


def test_damaged_files(tmp_path):
    v = tf.Variable(np.arange(5000.0))
    path = tf.train.Checkpoint(v=v).write(str(tmp_path / "c"))
    data = Path(f"{path}.data-00000-of-00001")
    content = bytearray(data.read_bytes())
    content[-9] ^= 1
    data.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError, match="Checksum does not match"):
        tf.train.Checkpoint(v=v).read(path)
    data.write_bytes(content[:100])
    with pytest.raises(tf.errors.DataLossError, match="the end of the file is missing"):
        tf.train.Checkpoint(v=v).read(path)
    Path(f"{path}.index").write_bytes(b"nothing")
    with pytest.raises(tf.errors.DataLossError, match="bad magic number"):
        tf.train.list_variables(path)


def test_arguments():
    with pytest.raises(ValueError, match="was expecting x to be a trackable object"):
        tf.train.Checkpoint(x=3)
    root = tf.Module()
    root.w = tf.Variable(1.0)
    with pytest.raises(ValueError, match=r"keyword argument w if root\.w already exists"):
        tf.train.Checkpoint(root, w=tf.Variable(2.0))


def test_a_root(tmp_path):
    root = tf.Module()
    root.w = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(root, q=tf.Variable(2.0))
    path = checkpoint.write(str(tmp_path / "c"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert names[1:] == [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in "qw"]
    root.w.assign(5.0)
    checkpoint.read(path).assert_consumed()
    assert root.w == 1.0


def test_iterators_and_generators(tmp_path):
    iterator, generator = iter(tf.data.Dataset.range(9)), tf.random.Generator.from_seed(1)
    checkpoint = tf.train.Checkpoint(iterator=iterator, generator=generator)
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]
    path = checkpoint.save(str(tmp_path / "c"))
    following = next(iterator), generator.normal([2])
    checkpoint.restore(path).assert_consumed()
    assert next(iterator) == following[0] == 3
    np.testing.assert_array_equal(generator.normal([2]), following[1])


def test_a_checkpoint_of_tensorflow_1(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = tf.compat.v1.get_variable("v", initializer=[1.0, 2.0])
        session.run(v.initializer)
        path = tf.compat.v1.train.Saver().save(session, str(tmp_path / "m"))
    v = tf.Variable([0.0, 0.0], name="v")
    tf.train.Checkpoint(anything=v).restore(path)
    assert v.numpy().tolist() == [1.0, 2.0]


def test_a_manager(tmp_path):
    step = tf.Variable(0)
    folder = str(tmp_path / "m")
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), folder, max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == [] and manager.restore_or_initialize() is None
    for number in range(1, 5):
        step.assign(number)
        assert manager.save() == f"{folder}/ckpt-{number}"
    assert manager.checkpoints == [f"{folder}/ckpt-3", f"{folder}/ckpt-4"]
    assert sorted(os.listdir(folder)) == [
        "checkpoint",
        *(f"ckpt-{n}.{end}" for n in (3, 4) for end in ("data-00000-of-00001", "index")),
    ]
    other = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), folder, max_to_keep=2)
    step.assign(0)
    assert other.checkpoints == manager.checkpoints and other.restore_or_initialize() == f"{folder}/ckpt-4"
    assert step == 4 and other.save() == f"{folder}/ckpt-5"
    assert other.save(checkpoint_number=77) == f"{folder}/ckpt-77" == tf.train.latest_checkpoint(folder)
    state = tf.train.get_checkpoint_state(folder)
    assert state.all_model_checkpoint_paths == other.checkpoints
    shutil.rmtree(folder)
    assert tf.train.latest_checkpoint(folder) is None
    with pytest.raises(ValueError, match="Expected a positive integer or `None`"):
        tf.train.CheckpointManager(tf.train.Checkpoint(), folder, max_to_keep=0)


def test_a_manager_that_waits_for_steps(tmp_path):
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step), tmp_path, 5, step_counter=step, checkpoint_interval=10
    )
    saved = []
    for number in range(25):
        step.assign(number)
        if manager.save() is not None:
            saved.append(number)
    assert saved == [0, 10, 20]


def test_a_list_of_the_root_is_restored_as_it_grows(tmp_path):
    saved = tf.train.Checkpoint()
    saved.listed = [tf.Variable(1.0)]
    saved.listed.append(tf.Variable(2.0))
    saved.mapped = {"two": saved.listed[1]}
    path = saved.save(str(tmp_path / "lists"))
    restored, two = tf.train.Checkpoint(), tf.Variable(0.0)
    restored.mapped = {"two": two}
    restored.restore(path)
    assert two.numpy() == 2.0
    restored.listed = []
    first = tf.Variable(0.0)
    restored.listed.append(first)
    assert first.numpy() == 1.0 and restored.listed == [first]


def test_a_reader_of_a_folder_is_a_data_loss(tmp_path):
    with pytest.raises(tf.errors.DataLossError, match="Is a directory"):
        tf.compat.v1.train.NewCheckpointReader(str(tmp_path))


def test_callbacks_of_written_checkpoints(tmp_path):
    paths, calls = [], []
    options = tf.train.CheckpointOptions(experimental_write_callbacks=[paths.append, lambda: calls.append(1)])
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    written = [checkpoint.write(tmp_path / "a", options), checkpoint.save(tmp_path / "b", options)]
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "c", max_to_keep=2)
    written.append(manager.save(options=options))
    assert paths == written and len(calls) == 3
    assert copy.copy(options).experimental_write_callbacks == options.experimental_write_callbacks
    with pytest.raises(AssertionError, match="0 or 1 parameters, but this has 2"):
        tf.train.CheckpointOptions(experimental_write_callbacks=[lambda path, more: None])


def test_slots_can_be_left_out_of_a_restoration(tmp_path):
    def momentum(start):
        v, optimizer = tf.Variable([start]), tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
        optimizer.apply_gradients([(tf.constant([start]), v)])
        return tf.train.Checkpoint(v=v, optimizer=optimizer), optimizer.get_slot(v, "momentum"), v

    path = momentum(3.0)[0].save(tmp_path / "c")
    for skip, expected in ((False, 3.0), (True, 1.0)):
        checkpoint, slot, v = momentum(1.0)
        checkpoint.restore(path, tf.train.CheckpointOptions(experimental_skip_slot_variables=skip))
        assert float(slot[0]) == expected
        np.testing.assert_allclose(v, [2.7])


def test_a_manager_deletes_only_what_a_manager_saved(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1))
    own = [checkpoint.save(str(tmp_path / "own")) for _ in range(2)]
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    assert manager.latest_checkpoint == own[1] and manager.checkpoints == []
    first, second = manager.save(), manager.save()
    assert manager.checkpoints == [second]
    exists = tf.compat.v1.train.checkpoint_exists
    assert all(map(exists, [*own, second])) and not exists(first)
    assert tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1).checkpoints == [second]


def test_a_manager_goes_on_when_the_clock_was_set_back(tmp_path, monkeypatch):
    clock = [10000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1))
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 1, keep_checkpoint_every_n_hours=1.0)
    paths = []
    for _ in range(3):
        paths.append(manager.save())
        clock[0] += 3600.0
    assert manager.checkpoints == paths[2:] and tf.compat.v1.train.checkpoint_exists(paths[1])
    clock[0] = 5000.0
    later = tf.train.CheckpointManager(checkpoint, tmp_path, 1, keep_checkpoint_every_n_hours=1.0)
    fourth = later.save()
    assert later.checkpoints == [fourth]
    assert all(map(tf.compat.v1.train.checkpoint_exists, [paths[1], paths[2], fourth]))
