"""Sessions: what can be fetched and fed, whose values variables have, and the errors."""

from collections import defaultdict, namedtuple

import numpy as np
import pytest

import tapeflow
from tapeflow.compat import v1 as tf

Pair = namedtuple("Pair", "a b")


@pytest.fixture
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def test_any_structure_can_be_fetched(graph):
    a, b = tf.constant(1.0), tf.constant([2, 3], name="b")
    v = tf.Variable(4.0)
    slices = tapeflow.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]), tf.constant([2, 1]))
    with tf.Session() as session:
        session.run(v.initializer)
        found = session.run({"x": [a, (b, a)], "y": Pair(a, v), "z": "b:0", "op": v.initializer, "s": slices})
        assert found["x"][0] == 1.0 and found["x"][1][0].tolist() == [2, 3]
        assert found["y"] == Pair(1.0, 4.0) and found["z"].tolist() == [2, 3] and found["op"] is None
        assert found["s"].indices.tolist() == [0] and isinstance(found["s"], tf.IndexedSlicesValue)
        assert session.run([]) == [] and isinstance(session.run(a), np.float32)


def test_any_tensor_can_be_fed(graph):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    middle = x * 2.0
    y = middle + 1.0
    constant = tf.constant(3.0)
    with tf.Session() as session:
        assert session.run(y, {x: [[1, 2]]}).tolist() == [[3.0, 5.0]]
        assert session.run(y, {"x:0": np.ones((1, 2))}).tolist() == [[3.0, 3.0]]
        assert session.run(y, {middle: [[7.0, 8.0]]}).tolist() == [[8.0, 9.0]]
        assert session.run(constant * 2.0, {constant: 5.0}) == 10.0
        assert session.make_callable(y, [x])([[1, 2]]).tolist() == [[3.0, 5.0]]
        assert y.eval({x: [[0, 0]]}).tolist() == [[1.0, 1.0]]


def test_sparse_placeholders(graph):
    x = tf.sparse_placeholder(tf.float32, [2, 2])
    with tf.Session() as session:
        value = tf.SparseTensorValue(np.array([[0, 1]]), np.array([5.0], "f"), np.array([2, 2]))
        assert session.run(x.values * 2.0, {x: value}).tolist() == [10.0]
        sized = tf.sparse_placeholder(tf.float32, shape=tf.constant([2, 3], tf.int64))
        kept = tf.sparse_retain(sized, tf.placeholder_with_default([True, False], None))
        fed = (np.array([[0, 0], [1, 2]]), np.array([1.0, 2.0], "f"), (2, 3))
        assert session.run(tf.sparse_tensor_to_dense(kept), {sized: fed}).tolist() == [[1, 0, 0], [0, 0, 0]]


def test_errors_are_tensorflows(graph):
    x = tf.placeholder(tf.float32, [None, 2])
    v = tf.get_variable("v", [2])
    with tf.Session() as session:
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"placeholder tensor 'Placeholder' with dtype float and shape \[\?,2\]",
        ):
            session.run(x * 2.0)
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"Could not find variable v.*uninitialized"):
            session.run(v)
        with pytest.raises(
            ValueError, match=r"Cannot feed value of shape \(3,\) for Tensor Placeholder:0, which has shape \(None, 2\)"
        ):
            session.run(x, {x: [1, 2, 3]})
        with pytest.raises(TypeError, match=r"Cannot be None"):
            session.run(None)
        with pytest.raises(TypeError, match='has invalid type "int" must be a string or Tensor'):
            session.run(3)
        with pytest.raises(ValueError, match=r"cannot be interpreted as a Tensor"):
            session.run("none:0")
        with pytest.raises(TypeError, match=r"Cannot interpret feed_dict key as Tensor"):
            session.run(x, {3: 4})
        with pytest.raises(TypeError, match=r"The value of a feed cannot be a tf.Tensor object"):
            session.run(x, {x: tf.constant(1.0)})
    with pytest.raises(RuntimeError, match=r"Attempted to use a closed Session"):
        session.run(x)
    with pytest.raises(ValueError, match=r"No default session is registered"):
        x.eval()
    with pytest.raises(RuntimeError, match=r"The Session graph is empty"):
        tf.Session(graph=tapeflow.Graph()).run([])


def test_each_session_has_its_own_values(graph):
    v = tf.Variable(1.0)
    up = v.assign_add(1.0)
    one, two = tf.Session(), tf.Session()
    for session in (one, two):
        session.run(v.initializer)
    one.run(up)
    one.run(up)
    assert one.run(v) == 3.0 and two.run(v) == 1.0 and one.run(v) == 3.0
    v.load(9.0, two)
    assert two.run(v) == 9.0 and one.run(v) == 3.0


def test_a_failed_run_changes_nothing(graph):
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    update = v.assign(x)
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(update)
        assert session.run(v) == 1.0


def test_assignments_give_the_new_value(graph):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(np.ones((3, 2), "f"))
    updates = [tf.assign(v, v * 2.0), tf.assign_add(v, [1.0, 1.0]), tf.scatter_update(w, [1], [[5.0, 6.0]])]
    with tf.Session() as session:
        assert tf.report_uninitialized_variables().eval().tolist() == [b"Variable", b"Variable_1"]
        session.run(tf.global_variables_initializer())
        assert session.run(updates[0]).tolist() == [2.0, 4.0]
        assert session.run(updates[1]).tolist() == [3.0, 5.0]
        assert session.run(updates[2])[1].tolist() == [5.0, 6.0]
        assert tf.report_uninitialized_variables().eval().tolist() == []


def test_configuration_is_accepted(graph):
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    with tf.Session(config=config) as session:
        assert tf.get_default_session() is session
        assert session.run(tf.constant(1)) == 1
        assert [(device.device_type, device.name[-5:]) for device in session.list_devices()] == [("CPU", "CPU:0")]


def test_settings_are_messages(graph):
    from google.protobuf import text_format

    config = tf.ConfigProto(device_count={"GPU": 0}, gpu_options=tf.GPUOptions(allow_growth=True))
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    other = tf.ConfigProto(log_device_placement=True)
    other.MergeFrom(config)
    assert other.gpu_options.allow_growth and other.HasField("graph_options") and not other.HasField("rpc_options")
    assert text_format.Parse(text_format.MessageToString(config), tf.ConfigProto()) == config
    with pytest.raises(ValueError, match='no "allow_sft_placement" field'):
        tf.ConfigProto(allow_sft_placement=True)
    with pytest.raises(AttributeError):
        config.gpu_option.allow_growth = True
    with pytest.raises(TypeError, match=r'must be a tf\.ConfigProto, but got "dict"'):
        tf.Session(config={"allow_soft_placement": True})


def test_operations_of_one_run_go_in_program_order(graph):
    v = tf.Variable(1.0)
    before, update, after = v + 0.0, v.assign(5.0), v + 0.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([after, update, before]) == [5.0, 5.0, 1.0]


def test_a_tensor_between_constants_can_be_fed():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        b = tf.constant(1.0) + 1.0
        c = b * 10.0
        assert (session.run(c), session.run(c, {b: 5.0}), session.run([b, c], {b: 5.0})) == (20, 50, [5, 50])


def test_a_constant_that_was_read_cannot_be_fed():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        shape, numbers = tf.constant([7, 3]), tf.range(21)
        rows = tf.reshape(numbers, shape)
        with pytest.raises(
            tapeflow.errors.InvalidArgumentError, match="feeding the constant Const:0 would change nothing"
        ):
            session.run(rows, {shape: [3, 7]})
        assert session.run(shape, {shape: [3, 7]}).tolist() == [3, 7]
        fed = tf.placeholder_with_default([7, 3], [2])
        assert session.run(tf.reshape(numbers, fed), {fed: [3, 7]}).shape == (3, 7)


def test_without_resource_variables_a_fetched_variable_is_read_after_the_run(graph):
    v = tf.Variable(1.0, name="v")
    update = v.assign_add(2.0).op
    tf.disable_resource_variables()
    try:
        with tf.Session() as session:
            session.run(v.initializer)
            assert session.run([v, update, "v:0"]) == [3.0, None, 3.0]
            assert session.run([v, update], {v: 7.0})[0] == 7.0
    finally:
        tf.enable_resource_variables()
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([v, update])[0] == 1.0


def test_a_structure_of_tensors_can_be_fed(graph):
    state = Pair(tf.placeholder(tf.float32, []), (tf.placeholder(tf.float32, [2]), tf.constant(3.0)))
    total = state.a + tf.reduce_sum(state.b[0]) + state.b[1]
    with tf.Session() as session:
        assert session.run(total, {state: Pair(1.0, ([1, 2], 10.0))}) == 14.0
        assert session.run(total, {state: session.run(state, {state.a: 1, state.b[0]: [2, 3]})}) == 9.0
        with pytest.raises(ValueError, match="Could not flatten dictionary"):
            session.run(total, {state: (1.0,)})


def test_tensors_that_may_not_be_fed_or_fetched():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        a = tf.constant(1.0, name="a")
        b = a + 1.0
        graph.prevent_feeding(a)
        graph.prevent_fetching(b.op)
        assert not graph.is_feedable(a) and graph.is_feedable(b)
        assert not graph.is_fetchable(b) and graph.is_fetchable(a.op)
        with pytest.raises(ValueError, match="Tensor a:0 may not be fed"):
            session.run(a, {a: 2.0})
        with pytest.raises(TypeError, match="has been marked as not fetchable"):
            session.run(b)


def test_an_error_names_its_operation():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, name="x")
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            session.run(x + 1.0)
        assert raised.value.op is x.op and raised.value.node_def.name == "x"


def test_sessions_of_other_graphs():
    with tf.Graph().as_default():
        x = tf.constant(1.0)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.constant(2.0)
        with pytest.raises(ValueError, match="the tensor's graph is different from the session's graph"):
            x.eval(session=session)
    with pytest.raises(TypeError, match="Argument `graph` must be a"):
        tf.Session(graph=3)


def test_a_prepared_run_checks_what_changes():
    """The second run of the same fetches and feeds skips checks; it still sees other values, shapes and graphs."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        v = tf.Variable([1.0, 1.0])
        session.run(v.initializer)
        y = tf.reduce_sum(x * v)
        fetches = [y]
        for rows in (1, 3, 1):
            assert session.run(fetches, {x: np.ones((rows, 2), np.float32)}) == [2.0 * rows]
        assert session.run(fetches, {x: [[1, 2]]}) == [3.0]
        assert session.run(fetches, {x: np.ones((1, 2))}) == [2.0]
        for _ in range(2):
            with pytest.raises(ValueError, match="Cannot feed value of shape"):
                session.run(fetches, {x: np.ones((1, 3), np.float32)})
        fetches[0] = y * 2.0
        assert session.run(fetches, {x: [[1.0, 2.0]]}) == [6.0]
        session.run(v.assign([2.0, 2.0]))
        assert session.run(fetches, {x: [[1.0, 2.0]]}) == [12.0]
        x.graph.prevent_feeding(x)
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(fetches, {x: [[1.0, 2.0]]})


def test_constants_can_be_fetched_from_an_empty_graph():
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.convert_to_tensor(1.5)) == 1.5
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(RuntimeError, match="graph is empty"):
        session.run([])


def test_targets_and_nesting_are_checked():
    with tapeflow.Graph().as_default():
        with pytest.raises(TypeError, match="Argument `target` must be a string"):
            tf.Session(37)
        with pytest.raises(tf.errors.NotFoundError, match="No session factory registered"):
            tf.Session("grpc://elsewhere:1")
        outer, inner = tf.Session(), tf.Session()
        first, second = outer.as_default(), inner.as_default()
        first.__enter__()
        second.__enter__()
        with pytest.raises(AssertionError, match="Nesting violated"):
            first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert tf.get_default_session() is outer
        first.__exit__(None, None, None)
        with tf.Session() as session:
            with pytest.raises(RuntimeError, match="not re-entrant"):
                session.__enter__()
            config = tf.ConfigProto(device_count={"CPU": 2})
        assert len(tf.Session(config=config).list_devices()) == 2


def test_default_dictionaries_keep_their_factory():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        found = session.run(defaultdict(list, {"a": tf.constant(1.0)}))
        assert found == {"a": 1.0}
        assert found["b"] == []


def test_a_sparse_tensor_evaluates_itself(graph):
    values = tf.placeholder(tf.float32, [1])
    x = tf.SparseTensor([[0, 1]], values, [2, 2])
    with pytest.raises(ValueError, match="No default session is registered"):
        x.eval()
    with tf.Session() as session:
        found = x.eval({values: [5.0]})
        assert isinstance(found, tf.SparseTensorValue)
        assert [part.tolist() for part in found] == [[[0, 1]], [5.0], [2, 2]]
        assert x.eval({values: [7.0]}, session).values.tolist() == [7.0]
