"""Iterators over datasets with a state outside of them: their checkpoints are refused, unless options allow them."""

import functools

import pytest

import tapeflow as tf

counter = tf.Variable(1, dtype=tf.int64)
table = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(tf.constant([1], tf.int64), tf.constant([2], tf.int64)), -1
)


def numbers():
    return tf.data.Dataset.range(5)


def printed(x):
    tf.print(x, output_stream="file:///dev/null")
    return x


STATEFUL = {
    "random": lambda: numbers().map(lambda x: tf.random.uniform([])),
    "seeded": lambda: numbers().map(lambda x: tf.random.uniform([], seed=1)),
    "variable": lambda: numbers().map(lambda x: x + counter),
    "assignment": lambda: numbers().map(lambda x: counter.assign_add(x)),
    "branch": lambda: numbers().map(lambda x: tf.cond(x > 2, lambda: x + counter, lambda: x)),
    "function": lambda: numbers().map(tf.function(lambda x: x + counter)),
    "python": lambda: numbers().map(lambda x: tf.py_function(lambda y: y, [x], tf.int64)),
    "in a branch": lambda: numbers().map(
        lambda x: tf.cond(x > 2, lambda: tf.numpy_function(lambda y: y, [x], tf.int64), lambda: x)
    ),
    "generator": lambda: tf.data.Dataset.from_generator(lambda: iter([1, 2]), tf.int64),
    "filter": lambda: numbers().filter(lambda x: x < counter + 3),
    "inner": lambda: numbers().flat_map(lambda x: numbers().map(lambda y: y + counter)),
    "windows": lambda: numbers().group_by_window(lambda x: x + counter, lambda _, part: part.batch(2), 2),
    "before a cache": lambda: numbers().map(lambda x: x + counter).cache().batch(2),
}
ALONE = {
    "plain": lambda: numbers().map(lambda x: x + 1),
    "stateless": lambda: numbers().map(lambda x: tf.random.stateless_uniform([], [1, 2])),
    "shuffled": lambda: numbers().shuffle(3).repeat(2),
    "table": lambda: numbers().map(table.lookup),
    "printed": lambda: numbers().map(printed),
    "value": lambda: numbers().map(functools.partial(tf.add, counter.read_value())),
}


def save(dataset, folder):
    iterator = iter(dataset)
    next(iterator)
    return tf.train.Checkpoint(iterator=iterator).save(str(folder / "c"))


@pytest.mark.parametrize("name", STATEFUL)
def test_state_outside_is_refused(name, tmp_path):
    with pytest.raises(tf.errors.FailedPreconditionError, match="is stateful"):
        save(STATEFUL[name](), tmp_path)


@pytest.mark.parametrize("name", ALONE)
def test_a_dataset_of_its_own_is_saved(name, tmp_path):
    assert save(ALONE[name](), tmp_path)


def test_options_allow_it(tmp_path):
    options = tf.data.Options()
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    assert save(STATEFUL["variable"]().with_options(options).batch(2), tmp_path)
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.WARN
    with pytest.warns(UserWarning, match="ReadVariableOp is stateful"):
        save(STATEFUL["variable"]().with_options(options), tmp_path)
