"""Functions of TensorFlow 1 with their own argument names, order and defaults."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.v1.signatures.declaration import declarations
from tapeflow._src.namespace import find_public

v1 = tf.compat.v1
assert v1.Session  # loads the declarations


@pytest.mark.parametrize("path", sorted(declarations))
def test_declarations_fit_the_function_of_today(path):
    function = find_public(f"compat.v1.{path}")
    declaration = declarations[path]
    parameters = inspect.signature(declaration.function).parameters
    required = {name for name, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    assert declaration.adapted or required <= declaration.received <= {*parameters}
    assert inspect.signature(function) == declaration.signature
    assert function.__name__ == path.rpartition(".")[2]
    assert f"tf.{declaration.target}" in function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function


def test_functions_unpickle_in_a_new_process():
    text = pickle.dumps([v1.reduce_sum, v1.nn.softmax, v1.sparse.concat])
    program = f"import pickle; print([f.__name__ for f in pickle.loads({text!r})])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['reduce_sum', 'softmax', 'concat']"


def test_a_deprecated_argument_and_its_new_name_exclude_each_other():
    for call in (
        lambda: v1.nn.softmax([0.0], axis=0, dim=0),
        lambda: v1.reduce_sum([1.0], 0, reduction_indices=0),
        lambda: v1.argmax([1.0], axis=0, dimension=0),
        lambda: v1.squeeze([[1.0]], [0], squeeze_dims=[0]),
        lambda: v1.count_nonzero([1], input=[1]),
    ):
        with pytest.raises(ValueError, match=r"^Cannot specify both '\w+' and '\w+'\.$"):
            call()
    with pytest.raises(ValueError, match=r"Must specify an axis argument to tf\.expand_dims\(\)"):
        v1.expand_dims([1.0])


def test_names_of_graph_nodes():
    with tf.Graph().as_default():
        assert v1.to_float(tf.constant(1)).op.name == "ToFloat"
        assert v1.reduce_sum([1.0], name="total").op.name == "total"


def test_order_of_arguments():
    assert v1.pad([1], [[1, 0]], "CONSTANT", "n", 5).numpy().tolist() == [5, 1]
    assert v1.transpose([[1, 2]], [1, 0], "n").shape == [2, 1]
    assert v1.gather([5, 6], [1], None, "n").numpy() == [6]
    assert v1.nn.in_top_k([[0.1, 0.9]], [1], 1).numpy().tolist() == [True]
    assert v1.math.confusion_matrix([0], [0], 1, tf.int64).dtype == tf.int64
    assert v1.batch_to_space(tf.zeros([4, 1, 1, 1]), [[0, 0], [0, 0]], 2).shape == [1, 2, 2, 1]
    assert v1.sparse.segment_sum([1.0, 2.0], [0, 1], [0, 0], "n").numpy() == [3]
    assert list(inspect.signature(v1.assert_less).parameters)[2:4] == ["data", "summarize"]


def test_deprecated_names():
    assert v1.reverse_sequence([[1, 2]], [2], seq_dim=1, batch_dim=0).numpy().tolist() == [[2, 1]]
    assert v1.zeros_like(tensor=[1], optimize=False).numpy() == [0]
    assert v1.strings.to_number(string_tensor="2").numpy() == 2
    assert v1.reduce_join([["a", "b"]], keep_dims=True, reduction_indices=1).numpy().tolist() == [[b"ab"]]
    sparse = tf.sparse.from_dense([[1, 2], [0, 3]])
    np.testing.assert_array_equal(v1.sparse_reduce_sum(sparse, reduction_axes=1, keep_dims=True).numpy(), [[3], [3]])
    with pytest.raises(ValueError, match="Cannot specify both 'seq_dim' and 'seq_axis'"):
        v1.reverse_sequence([[1, 2]], [2], seq_axis=1, seq_dim=1)
    with pytest.raises(TypeError, match=r"pad\(\) got an unexpected keyword argument 'x'"):
        v1.pad([1], [[0, 1]], x=1)


def test_split_gives_a_sparse_tensor():
    words = v1.strings.split(["a b", "c"])
    assert isinstance(words, tf.SparseTensor)
    assert words.dense_shape.numpy().tolist() == [2, 2]
    assert v1.strings.split(["a b"], result_type="RaggedTensor").to_list() == [[b"a", b"b"]]


def test_the_message_of_an_assertion_is_shown():
    with pytest.raises(tf.errors.InvalidArgumentError, match="they differ"):
        v1.assert_equal(1, 2, data=["x"], message="they differ")


def test_py_func_gives_arrays():
    with tf.Graph().as_default(), v1.Session() as session:
        doubled = v1.py_func(lambda x: (2 * x, x.sum()), [tf.constant([1.0, 2.0])], [tf.float32, tf.float32])
        assert [value.tolist() for value in session.run(doubled)] == [[2.0, 4.0], 3.0]


def test_texts_become_numbers_in_a_graph():
    with tf.Graph().as_default(), v1.Session() as session:
        assert session.run(v1.string_to_number(tf.constant(["1.5", "2"]))).tolist() == [1.5, 2.0]


def test_values_that_may_be_sparse_stay_so():
    np.testing.assert_allclose(v1.clip_by_average_norm([3.0, 4.0], 1.25).numpy(), [1.5, 2.0])
    np.testing.assert_allclose(v1.clip_by_average_norm([3.0, 4.0], 5.0).numpy(), [3.0, 4.0])
    sparse, slices = tf.sparse.from_dense([1, 0]), tf.IndexedSlices([1.0], [0])
    assert v1.convert_to_tensor_or_sparse_tensor(sparse) is sparse
    assert v1.convert_to_tensor_or_indexed_slices(slices) is slices
    assert v1.convert_to_tensor_or_indexed_slices([1]).numpy() == [1]
