"""`get_variable` and `variable_scope`: reuse, inherited settings, custom getters, errors."""

import gc

import pytest

import tapeflow
from tapeflow._src.compat.v1.variables import variable_store
from tapeflow.compat import v1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def test_reuse_finds_variables_again():
    with tf.variable_scope("s") as scope:
        w = tf.get_variable("w", [2])
        with pytest.raises(
            ValueError, match=r"Variable s/w already exists, disallowed\. Did you mean to set reuse=True"
        ):
            tf.get_variable("w", [2])
        scope.reuse_variables()
        assert tf.get_variable("w", [2]) is w
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("w", [2]) is w
        with pytest.raises(ValueError, match=r"specified shape \(3,\) and found shape \(2,\)"):
            tf.get_variable("w", [3])
        with pytest.raises(ValueError, match=r"specified dtype int32 and found dtype float32"):
            tf.get_variable("w", [2], dtype=tf.int32)
        with pytest.raises(ValueError, match=r"Variable s/u does not exist, or was not created with tf\.get_variable"):
            tf.get_variable("u", [2])
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("w", [2]) is w
        assert tf.get_variable("u", [2]).name == "s/u:0"


def test_scopes_give_initializers_and_regularizers():
    with tf.variable_scope("s", initializer=tf.constant_initializer(3.0), regularizer=tf.nn.l2_loss):
        with tf.variable_scope("t"):
            w = tf.get_variable("w", [2])
        tf.get_variable("free", [2], regularizer=tf.no_regularizer)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(w).tolist() == [3.0, 3.0]
        assert [float(x) for x in session.run(tf.losses.get_regularization_losses())] == [9.0]


def test_custom_getters_wrap_each_other():
    calls = []

    def getter(name):
        def get(next_getter, *args, **kwargs):
            calls.append(name)
            return next_getter(*args, **kwargs)

        return get

    with tf.variable_scope("a", custom_getter=getter("outer")), tf.variable_scope("b", custom_getter=getter("inner")):
        assert tf.get_variable("w", [1]).name == "a/b/w:0"
    assert calls == ["inner", "outer"]


def test_shapes_and_initializers_are_checked():
    with pytest.raises(ValueError, match=r"did not get an initializer, so its `shape` argument must be specified"):
        tf.get_variable("w")
    with pytest.raises(ValueError, match=r"If initializer is a constant, do not specify shape"):
        tf.get_variable("w", [2], initializer=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"must be fully defined"):
        tf.get_variable("w", [None, 2])


def test_initial_values_may_depend_on_each_other():
    w = tf.Variable(tf.random_normal([3]))
    double = tf.Variable(w.initialized_value() * 2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run([w, double])
        assert (2.0 * first).tolist() == second.tolist()


def test_layers_make_their_variables():
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.layers.dense(tf.layers.dense(x, 4, activation=tf.nn.relu), 2, name="out")
    assert y.shape.as_list() == [None, 2]
    assert [v.name for v in tf.trainable_variables()] == [
        "dense/kernel:0", "dense/bias:0", "out/kernel:0", "out/bias:0",
    ]  # fmt: skip


def test_scopes_that_are_entered_by_hand_last():
    context = tapeflow.Graph().as_default()
    context.__enter__()
    try:
        tf.variable_scope("outer").__enter__()
        gc.collect()
        assert tf.get_variable_scope().name == "outer"
        scope = tf.variable_scope("a", initializer=tf.constant_initializer(3.0), reuse=tf.AUTO_REUSE)
        scope.__enter__()
        assert tf.get_variable("x", [2]).name == "outer/a/x:0"
        with scope:  # once more, inside of itself
            assert tf.get_variable_scope().name == "outer/a/a"
        scope.__exit__(None, None, None)
        assert tf.get_variable_scope().name == "outer"
    finally:
        context.__exit__(None, None, None)


def test_regularizers_and_getters_have_names_of_their_own():
    def doubled(getter, name, *args, **kwargs):
        return tf.multiply(getter(name, *args, **kwargs), 2.0, name="doubled")

    with tapeflow.Graph().as_default():
        with tf.variable_scope("s", regularizer=tf.reduce_sum):
            tf.get_variable("w", [2])
        assert [x.name for x in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)] == ["s/w/Regularizer/Sum:0"]
        with tf.variable_scope("t", custom_getter=doubled):
            assert tf.get_variable("w", [2]).name == "doubled:0"
        assert tf.get_variable("text", [2], tf.string).dtype == tf.string


def test_counting_and_checking():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(0, name="v")
        check, count = tf.assert_variables_initialized(), v.count_up_to(2)
        with pytest.raises(tf.errors.FailedPreconditionError, match="Attempting to use uninitialized value v"):
            session.run(check)
        session.run(v.initializer)
        session.run(check)
        assert [session.run(count) for _ in range(2)] == [0, 1]
        with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
            session.run(count)


def test_scopes_are_left_in_order():
    with tf.Graph().as_default(), tf.variable_scope("outer"):
        scope = tf.variable_scope("inner")
        scope.__enter__()
        with tf.variable_scope("innermost"), pytest.raises(RuntimeError, match="Improper nesting of variable_scope"):
            scope.__exit__(None, None, None)
        scope.__exit__(None, None, None)
        assert tf.get_variable_scope().name == "outer"


def test_creators_of_variables():
    seen = []

    def creator(make, **options):
        seen.append((options["name"], options["trainable"]))
        return make(**options)

    with tf.Graph().as_default(), tf.variable_creator_scope(creator):
        tf.get_variable("v", [2])
        tf.Variable(1.0, name="w", trainable=False)
    assert seen == [("v", True), ("w", False)]


def test_names_that_no_variable_can_have():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="is not a valid root scope name"):
            tf.get_variable("a b", [1])
        with pytest.raises(TypeError, match="name_or_scope must be a string or VariableScope"):
            tf.variable_scope(3).__enter__()


def test_a_store_of_a_library_answers():
    class Store:
        def get_variable(self, name, shape=None, reuse=None, **options):
            return name, shape, options["dtype"]

    with variable_store.with_variable_store(Store()), tf.variable_scope("layer"):
        assert tf.get_variable("w", [2]) == ("layer/w", [2], tapeflow.float32)
        assert isinstance(variable_store.default_variable_store(), Store)
    assert "layer/w" not in variable_store.default_variable_store()._vars


def test_name_scopes_and_variable_scopes_outside_of_graphs():
    names = []

    def build():
        with tapeflow.name_scope("a"):
            names.append(tf.get_variable("w", [1]).name)
        with tf.variable_scope("o"):
            names.extend([tf.get_variable("w", [1]).name, tapeflow.Variable(1.0, name="q").name])

    with tapeflow.init_scope():
        tf.wrap_function(build, [])
    assert names == ["w:0", "o/w:0", "o/q:0"]


def test_values_given_with_another_dtype_are_refused():
    with tapeflow.Graph().as_default(), pytest.raises(ValueError, match="Initializer type 'int32' and explicit dtype"):
        tf.get_variable("w", initializer=tf.constant([1]), dtype=tf.float32)


def test_initializers_without_a_shape():
    with tapeflow.Graph().as_default():
        assert tf.get_variable("w", initializer=lambda size=2: tf.zeros([size])).shape == [2]
        with pytest.raises(ValueError, match="The initializer passed is not valid"):
            tf.get_variable("b", initializer=lambda size: tf.zeros([size]))


def test_default_names_go_on_after_a_scope_is_entered_again():
    with tapeflow.Graph().as_default(), tf.variable_scope("net") as net:
        for name in ("layer", "layer_1"):
            with tf.variable_scope(None, "layer") as layer:
                assert layer.name == f"net/{name}"
        with tf.variable_scope(net):
            pass
        with tf.variable_scope(None, "layer") as layer:
            assert layer.name == "net/layer_2"


def test_local_variables_are_in_their_collection_and_in_those_given():
    with tapeflow.Graph().as_default():
        n = tf.get_local_variable("n", [], collections=["mine"])
        assert tf.local_variables() == [n]
        assert tf.get_collection("mine") == [n]
        assert not tf.trainable_variables()


def test_what_is_read_on_request_is_not_trained():
    with tapeflow.Graph().as_default():
        on_read = tf.VariableSynchronization.ON_READ
        assert not tf.get_variable("a", [], synchronization=on_read).trainable
        assert tf.get_variable("b", [], synchronization=on_read, trainable=True).trainable


def test_getters_and_name_scopes_of_the_wrong_kind():
    with tapeflow.Graph().as_default():
        with pytest.raises(ValueError, match="custom_getter which is not callable: 3"):
            tf.get_variable("a", [], custom_getter=3)
        with (
            pytest.raises(TypeError, match="auxiliary_name_scope must be"),
            tf.variable_scope("s", auxiliary_name_scope=1),
        ):
            pass
