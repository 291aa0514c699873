"""Python's builtin functions in converted code: of tensors, datasets and lists of tensors."""

import pytest

import tapeflow as tf
from tapeflow._src.function.autograph.builtins import call_builtin


def traced(run, *args):
    return tf.function(run)(*args)


def endless():
    return tf.data.Dataset.range(3).repeat()


@pytest.mark.parametrize("builtin", [min, max])
def test_extremes_take_a_scalar_or_a_row(builtin):
    assert traced(lambda x: builtin(x), tf.constant(4)).numpy() == 4
    assert traced(lambda x: builtin(x), tf.constant([4])).numpy() == 4
    assert traced(lambda x, y: builtin(x, y), tf.constant(2), tf.constant(2)).numpy() == 2
    with pytest.raises(ValueError, match=f"{builtin.__name__}.arg. requires a tensor of rank 1"):
        traced(lambda x: builtin(x), tf.constant([[4]]))
    with pytest.raises(ValueError, match="requires scalar tensors"):
        traced(lambda x: builtin(x, 1), tf.constant([4]))


def test_range_that_ends_before_it_begins_is_empty():
    assert traced(lambda n: range(n), tf.constant(-2)).shape == [0]
    assert traced(lambda n: range(4, n), tf.constant(1)).shape == [0]
    assert traced(lambda n: range(4, n), tf.constant(6)).numpy().tolist() == [4, 5]


def test_int_takes_base_ten():
    assert traced(lambda x: int(x, 10), tf.constant("12")).numpy() == 12
    with pytest.raises(NotImplementedError, match="base 2"):
        traced(lambda x: int(x, 2), tf.constant("12"))


def test_sorted_calls_its_key_once_for_each_row():
    rows = tf.constant([[5, 4], [1, 2], [3, 0]])
    found = traced(lambda x: sorted(x, key=lambda row: tf.reduce_sum(row)), rows)
    assert found.numpy().tolist() == [[1, 2], [3, 0], [5, 4]]
    with pytest.raises(ValueError, match="sorted requires keys of rank 1"):
        traced(lambda x: sorted(x, key=lambda row: -row), rows)


def test_len_of_a_dataset_while_tracing():
    def count():
        return len(tf.data.Dataset.range(7).batch(2))

    assert traced(count).numpy() == 4
    assert call_builtin(len, (tf.data.Dataset.range(7),), {}).numpy() == 7
    for dataset in (endless(), tf.data.Dataset.range(3).filter(lambda x: x > 0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="infinite, or its length is unknown"):
            traced(lambda dataset=dataset: len(dataset))
        with pytest.raises(tf.errors.InvalidArgumentError, match="infinite, or its length is unknown"):
            call_builtin(len, (dataset,), {})


def test_len_of_a_dataset_in_a_graph_depends_on_its_check():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        size = call_builtin(len, (tf.data.Dataset.range(7),), {})
        assert session.run(size) == 7
        size = call_builtin(len, (endless(),), {})
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(size)


def test_len_of_a_list_of_tensors():
    assert traced(lambda: len(tf.TensorArray(tf.int32, size=5))).numpy() == 5


def test_len_of_a_scalar_is_refused():
    with pytest.raises(ValueError, match="non-scalar"):
        traced(lambda: len(tf.constant(1)))


def test_abs_of_a_dataset_keeps_its_structure():
    one = tf.data.Dataset.from_tensor_slices([-1, 2])
    assert [x.numpy() for x in call_builtin(abs, (one,), {})] == [1, 2]
    nested = tf.data.Dataset.zip((one, {"a": one}))
    assert [(x.numpy(), y["a"].numpy()) for x, y in call_builtin(abs, (nested,), {})] == [(1, 1), (2, 2)]


@pytest.mark.parametrize(("builtin", "expected"), [(any, True), (all, False)])
def test_any_and_all_take_datasets_of_booleans_only(builtin, expected):
    flags = tf.data.Dataset.from_tensor_slices([True, False])
    assert traced(lambda: builtin(flags)).numpy() == expected
    for wrong in (tf.data.Dataset.range(2), tf.data.Dataset.zip((flags, flags))):
        with pytest.raises(ValueError, match="datasets of single booleans"):
            traced(lambda wrong=wrong: builtin(wrong))


def test_print_of_converted_code_is_pythons(capsys):
    prints = tf.autograph.experimental.Feature.BUILTIN_FUNCTIONS

    @tf.function(experimental_autograph_options=prints)
    def show(x, text):
        print("x is", x, {"a": 1}, text, sep="|")

    show(tf.constant([1, 2]), tf.constant("ä"))
    assert capsys.readouterr().out == "x is|[1 2]|{'a': 1}|ä\n"
