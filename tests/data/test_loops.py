"""Datasets and iterators in graphs: loops, arguments of functions, optionals, gradients."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import tapeflow as tf

Dataset = tf.data.Dataset


@tf.function
def total(dataset):
    found = tf.constant(0, tf.int64)
    for x in dataset:
        found += x
    return found


def test_one_graph_serves_all_datasets_of_one_kind():
    before = total.experimental_get_tracing_count()
    assert total(Dataset.range(5)) == 10
    assert total(Dataset.range(3).map(lambda x: x * x)) == 5
    assert total(Dataset.range(4).shuffle(4)) == 6
    assert total(Dataset.range(0)) == 0
    assert total.experimental_get_tracing_count() == before + 1


def test_an_iterator_goes_on_where_it_was():
    @tf.function
    def up_to_six(iterator):
        found = tf.constant(0, tf.int64)
        for x in iterator:
            found += x
            if found > 5:
                break
        return found

    iterator = iter(Dataset.range(10))
    assert [int(up_to_six(iterator)), int(up_to_six(iterator)), int(next(iterator))] == [6, 9, 6]


def test_elements_are_structures():
    @tf.function
    def run(dataset):
        rows = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for number, (x, more) in enumerate(dataset):
            rows = rows.write(tf.cast(number, tf.int32), x * tf.cast(number, tf.float32) + more["y"])
        return rows.stack()

    dataset = Dataset.from_tensor_slices(([1.0, 2.0, 3.0], {"y": [10.0, 20.0, 30.0]}))
    assert run(dataset).numpy().tolist() == [10.0, 22.0, 36.0]


def test_ragged_and_sparse_elements():
    @tf.function
    def run(dataset):
        found = tf.constant(0)
        for ragged, sparse in dataset:
            found += tf.reduce_sum(ragged.flat_values) * tf.reduce_sum(sparse.values)
        return found

    ragged = Dataset.from_tensors(tf.ragged.constant([[1, 2], [3]]))
    sparse = Dataset.from_tensors(tf.SparseTensor([[0, 1]], [5], [1, 2]))
    assert run(Dataset.zip(ragged, sparse).repeat(2)) == 60


def test_none_in_elements():
    dataset = Dataset.range(3).map(lambda x: (x, None)).map(lambda x, nothing: (x + 1, nothing, {"n": nothing}))

    @tf.function
    def run(dataset):
        found = tf.constant(0, tf.int64)
        for x, nothing, more in dataset:
            if nothing is None and more["n"] is None:
                found += x
        return found

    assert run(dataset) == 6

    @tf.function
    def first(iterator):
        optional = iterator.get_next_as_optional()
        x, nothing, _ = optional.get_value()
        return x, nothing

    assert first(iter(dataset))[1] is None
    assert next(iter(dataset.batch(3)))[1] is None


def test_zip_and_nested_loops():
    @tf.function
    def products(first, second):
        found = tf.constant(0, tf.int64)
        for x, y in zip(first, second):
            found += x * y
        for x in first:
            for y in Dataset.range(x):
                found += 1000 * y
        return found

    assert products(Dataset.range(4), Dataset.range(1, 9)) == 20 + 1000 * (0 + 1 + 3)


def test_a_dataset_of_symbolic_tensors():
    @tf.function
    def run(x, size):
        dataset = Dataset.from_tensor_slices(x).map(lambda row: row * x[0]).batch(size)
        found = tf.constant(0.0)
        for batch in dataset.take(2):
            found += tf.reduce_max(batch)
        return found, dataset.cardinality(), dataset.reduce(0.0, lambda s, b: s + tf.reduce_sum(b))

    found = run(tf.constant([2.0, 3.0, 4.0, 5.0, 9.0]), tf.constant(2, tf.int64))
    assert [float(x) for x in found] == [6.0 + 10.0, 3.0, 46.0]
    found = run(tf.constant([1.0, 1.0]), tf.constant(1, tf.int64))
    assert [float(x) for x in found] == [2.0, 2.0, 2.0]


def test_signatures():
    spec = tf.TensorSpec([None], tf.int64)

    @tf.function(input_signature=[tf.data.DatasetSpec(spec)])
    def sizes(dataset):
        found = tf.constant(0)
        for x in dataset:
            found = 10 * found + tf.shape(x)[0]
        return found

    assert sizes(Dataset.range(5).batch(2)) == 221
    assert sizes(Dataset.range(4).batch(3)) == 31
    assert sizes.experimental_get_tracing_count() == 1

    @tf.function(input_signature=[tf.data.IteratorSpec(spec)])
    def size(iterator):
        return tf.shape(next(iterator))[0]

    iterator = iter(Dataset.range(5).batch(3))
    assert [int(size(iterator)), int(size(iterator))] == [3, 2]


def test_a_function_that_makes_a_dataset():
    @tf.function
    def squares(limit):
        return Dataset.range(limit).map(lambda x: x * x + limit)

    assert [int(x) for x in squares(tf.constant(3, tf.int64))] == [3, 4, 7]

    @tf.function
    def largest(dataset, limit):
        return dataset.filter(lambda x: x < limit).reduce(tf.constant(0, tf.int64), tf.maximum)

    assert largest(Dataset.range(9), tf.constant(5, tf.int64)) == 4


def test_python_functions_of_datasets():
    def tenfold(x):
        return x * 10

    @tf.function
    def run(dataset):
        found = tf.constant(0, tf.int64)
        for x in map(tenfold, filter(lambda x: x > 2, dataset)):
            found += x
        return found

    assert run(Dataset.range(5)) == 70

    @tf.function
    def facts(dataset):
        above = dataset.map(lambda x: x > 2)
        return len(dataset), any(above), all(above)

    assert [int(x) for x in facts(Dataset.range(5))] == [5, 1, 0]
    assert [int(x) for x in facts(Dataset.range(3, 5))] == [2, 1, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="its length is unknown"):
        facts(Dataset.range(5).filter(lambda x: x > 2))


def test_jumps():
    @tf.function
    def first_above(dataset, limit):
        for x in dataset:
            if x % 2 == 0:
                continue
            if x > limit:
                return x
        return tf.constant(-1, tf.int64)

    limit = tf.constant(4, tf.int64)
    assert [int(first_above(Dataset.range(10), limit)), int(first_above(Dataset.range(4), limit))] == [5, -1]


def test_next_in_a_function():
    @tf.function
    def pair(iterator):
        return next(iterator), iterator.get_next()

    iterator = iter(Dataset.range(5))
    assert [int(x) for x in pair(iterator)] == [0, 1]
    assert [int(x) for x in pair(iterator)] == [2, 3]
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        pair(iterator)
    pair(iter(Dataset.from_tensor_slices([1.0, 2.0])))
    assert pair.experimental_get_tracing_count() == 2

    @tf.function
    def first_two(dataset):
        iterator = iter(dataset)
        return next(iterator) * 10 + next(iterator)

    assert [int(first_two(Dataset.range(3, 9))), int(first_two(Dataset.range(9)))] == [34, 1]


def test_a_captured_iterator_is_shared():
    iterator = iter(Dataset.range(4))

    @tf.function
    def take():
        return next(iterator)

    assert [int(take()), int(next(iterator)), int(take())] == [0, 1, 2]


def test_training_in_a_loop():
    w = tf.Variable(2.0)

    @tf.function
    def train(dataset):
        loss = tf.constant(0.0)
        for x, y in dataset:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((w * x - y) ** 2)
            w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    # The values are TensorFlow's.
    dataset = Dataset.from_tensor_slices(([1.0, 2.0, 3.0, 4.0], [3.0, 6.0, 9.0, 12.0])).batch(2)
    np.testing.assert_allclose(train(dataset), 20.25, rtol=1e-6)
    np.testing.assert_allclose(w, 2.55, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 3])
def test_gradients_through_a_loop(size):
    w = tf.Variable(2.0)

    @tf.function
    def run(dataset):
        found = tf.constant(1.0)
        for x in dataset:
            found = found * w + x
        return found

    rows = [1.0, 2.0, 3.0][:size]
    dataset = Dataset.from_tensor_slices(rows).shuffle(3)  # the gradient must see the order of the run
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            y = run(dataset)
        expected = {1: [3.0], 3: []}[size]
        if expected:
            assert float(y) == expected[0]
        order = _order(float(y), rows)
        dy = np.polyval(np.polyder([1.0, *order]), 2.0)
        np.testing.assert_allclose(tape.gradient(y, w), dy)
        np.testing.assert_allclose(tape.gradient(y, w), dy)


def _order(y, rows):
    """The order of the rows in which Horner's rule gives y at 2."""
    from itertools import permutations

    return next(order for order in permutations(rows) if np.polyval([1.0, *order], 2.0) == y)


def test_optionals_in_graphs():
    @tf.function
    def last_or(iterator, otherwise):
        found = otherwise
        optional = iterator.get_next_as_optional()
        if optional.has_value():
            found = optional.get_value()
        return found

    iterator = iter(Dataset.range(7, 8))
    nothing = tf.constant(-1, tf.int64)
    assert [int(last_or(iterator, nothing)), int(last_or(iterator, nothing))] == [7, -1]

    @tf.function
    def boxed(x):
        return tf.experimental.Optional.from_value({"x": x * 2})

    assert float(boxed(tf.constant(4.0)).get_value()["x"]) == 8.0

    @tf.function
    def empty():
        return tf.experimental.Optional.empty(tf.TensorSpec([], tf.float32)).get_value()

    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
        empty()


def test_a_loop_over_optionals():
    @tf.function
    def run(dataset):
        iterator, found = iter(dataset), tf.constant(0, tf.int64)
        optional = iterator.get_next_as_optional()
        while optional.has_value():
            found += optional.get_value()
            optional = iterator.get_next_as_optional()
        return found

    assert run(Dataset.range(5)) == 10


def test_an_iterator_for_each_round():
    @tf.function
    def run(dataset):
        found = tf.constant(0, tf.int64)
        for _ in tf.range(3):
            iterator = iter(dataset)
            for _ in tf.range(2):
                found += next(iterator)
        return found

    assert run(Dataset.range(4, 9)) == 27


def test_several_steps_in_one_call():
    """As Keras runs `steps_per_execution` steps: the kind of an empty optional is told while the loop is traced."""
    w = tf.Variable(0.0)
    Optional = tf.experimental.Optional

    def steps(count):
        @tf.autograph.experimental.do_not_convert
        def run(iterator):
            empty = Optional.empty(None)

            def body(step, outputs, inputs):
                def go_on():
                    w.assign_add(tf.reduce_sum(inputs.get_value()))
                    found = Optional.from_value({"w": w.read_value()})
                    empty._element_spec = found.element_spec
                    return found

                def stay():
                    outputs._element_spec = empty._element_spec
                    return outputs

                found = tf.cond(tf.logical_and(step < count, inputs.has_value()), go_on, stay)
                return step + 1, found, tf.cond(step + 1 < count, iterator.get_next_as_optional, lambda: inputs)

            def going(step, outputs, inputs):
                return tf.logical_and(step < count, inputs.has_value())

            start = (tf.constant(0), empty, iterator.get_next_as_optional())
            _, outputs, _ = tf.while_loop(going, body, start)
            outputs._element_spec = empty.element_spec
            return outputs

        return tf.function(run)

    run, iterator = steps(2), iter(Dataset.range(1, 4).map(lambda x: tf.cast(x, tf.float32)))
    assert float(run(iterator).get_value()["w"]) == 3.0
    assert float(run(iterator).get_value()["w"]) == 6.0
    assert not run(iterator).has_value()


def test_a_python_loop_in_a_graph_ends():
    @tf.function(autograph=False)
    def first(dataset):
        for x in dataset:
            return x
        return None

    @tf.function(autograph=False)
    def all_of(dataset):
        for x in dataset:
            tf.print(x)

    assert first(Dataset.range(3, 5)) == 3
    with pytest.raises(TypeError, match="would never end"):
        all_of(Dataset.range(3))
    with pytest.raises(TypeError, match="would never end"):
        tf.function(lambda dataset: list(dataset))(Dataset.range(3))


def test_the_page_runs(tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page, re.DOTALL)):
        (tmp_path / f"block{number}.py").write_text(block)
        runpy.run_path(str(tmp_path / f"block{number}.py"))
    assert capsys.readouterr().out.strip().endswith("[1. 2.]")


def test_iteration_that_a_graph_cannot_do():
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="only supports Python-style iteration"):
        iter(Dataset.range(3))
    with pytest.raises(RuntimeError, match="only supported in eager mode"):
        tf.function(lambda: Dataset.range(3).as_numpy_iterator())()
